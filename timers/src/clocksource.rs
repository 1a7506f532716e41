//! Clock sources of the kernel.

/// Names of the clock sources that the kernel can use, and of the one that it uses.
///
/// ```
/// if let Some(found) = downbeat_timers::kernel::Clocksources::read() {
///     assert!(found.available.contains(&found.current));
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocksources {
    /// Clock source in use.
    pub current: String,
    /// All that the kernel accepts, including that one.
    pub available: Vec<String>,
}

impl Clocksources {
    /// Reads the names; `None` on systems other than Linux.
    pub fn read() -> Option<Self> {
        const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
        let text = |name| std::fs::read_to_string(format!("{FOLDER}/{name}")).ok();
        Some(Self::of(
            &text("current_clocksource")?,
            &text("available_clocksource")?,
        ))
    }

    pub(crate) fn of(current: &str, available: &str) -> Self {
        Self {
            current: current.trim().to_owned(),
            available: available.split_whitespace().map(str::to_owned).collect(),
        }
    }
}
