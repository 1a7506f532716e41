//! State of the algorithm by which the kernel keeps its time: NTP's, or that of PTP.

use downbeat_clock_core::Duration;

use crate::ClockUnavailable;

/// State of the system's time, as the kernel and the daemon that steers it see it.
///
/// `CLOCK_REALTIME` and `CLOCK_MONOTONIC` run [`adjustment`](Self::adjustment) faster than `CLOCK_MONOTONIC_RAW`. Without a
/// daemon, they run by the kernel's estimate of the counter's rate, which nothing bounds.
///
/// ```no_run
/// let time = downbeat_timers::kernel::Discipline::read()?;
/// if time.synchronized {
///     println!("right to {} by its own account", time.maximum_error);
/// }
/// # Ok::<(), downbeat_timers::ClockUnavailable>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Discipline {
    /// True if a daemon keeps the time synchronized.
    pub synchronized: bool,
    /// Adjustment of the rate, as a fraction: 1e-6 is one microsecond per second.
    pub adjustment: f64,
    /// Offset that the kernel still removes by slewing.
    pub offset: Duration,
    /// Maximum error; it grows by 500 ppm until the daemon lowers it.
    pub maximum_error: Duration,
    /// Estimated error.
    pub estimated_error: Duration,
    /// International atomic time minus UTC in seconds, if the kernel was told.
    pub tai_offset: Option<i32>,
}

impl Discipline {
    /// Reads the state.
    ///
    /// # Errors
    /// On systems other than Linux, or if the kernel refuses.
    #[cfg(not(target_os = "linux"))]
    pub fn read() -> Result<Self, ClockUnavailable> {
        Err(ClockUnavailable::NotOnThisSystem(NAME))
    }

    /// Reads the state.
    ///
    /// # Errors
    /// On systems other than Linux, or if the kernel refuses.
    #[cfg(target_os = "linux")]
    pub fn read() -> Result<Self, ClockUnavailable> {
        // SAFETY: the structure consists of integers, for which zeros are valid.
        let mut raw: libc::timex = unsafe { core::mem::zeroed() };
        // SAFETY: with `modes` 0 the kernel changes nothing but the structure, which is as long as it expects.
        let state = unsafe { libc::adjtimex(&raw mut raw) };
        if state < 0 {
            let errno = std::io::Error::last_os_error().raw_os_error();
            return Err(ClockUnavailable::Refused {
                clock: NAME,
                errno: errno.unwrap_or_default(),
            });
        }
        Ok(Self::of(state, &raw))
    }

    #[cfg(target_os = "linux")]
    fn of(state: libc::c_int, raw: &libc::timex) -> Self {
        /// Unit of frequencies: parts per million in 16 fractional bits.
        const FREQUENCY: f64 = 1e-6 / 65_536.0;
        // By way of i128, as the numbers have 32 or 64 bits; times are shorter than minutes.
        let nanos =
            |number: libc::c_long, unit| Duration::from_nanos((i128::from(number) * unit) as i64);
        Self {
            synchronized: state != libc::TIME_ERROR && raw.status & libc::STA_UNSYNC == 0,
            adjustment: raw.freq as f64 * FREQUENCY,
            offset: match raw.status & libc::STA_NANO {
                0 => nanos(raw.offset, 1_000),
                _ => nanos(raw.offset, 1),
            },
            maximum_error: nanos(raw.maxerror, 1_000),
            estimated_error: nanos(raw.esterror, 1_000),
            tai_offset: (raw.tai != 0).then_some(raw.tai),
        }
    }
}

const NAME: &str = "adjtimex";

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reports_its_state() {
        let found = Discipline::read().unwrap();
        assert!(found.adjustment.abs() < 1e-3, "{found:?}");
        assert!(found.maximum_error >= Duration::ZERO);
    }

    #[test]
    fn units_depend_on_the_mode() {
        // SAFETY: as in `read`.
        let mut raw: libc::timex = unsafe { core::mem::zeroed() };
        (raw.freq, raw.offset, raw.maxerror, raw.esterror) = (-65_536 * 3 / 2, 70, 1_200, 30);
        let coarse = Discipline::of(libc::TIME_OK, &raw);
        assert_eq!(coarse.offset, Duration::from_micros(70));
        assert!((coarse.adjustment + 1.5e-6).abs() < 1e-12);
        assert_eq!(
            (coarse.maximum_error, coarse.estimated_error),
            (Duration::from_micros(1_200), Duration::from_micros(30))
        );
        assert!(coarse.synchronized && coarse.tai_offset.is_none());
        (raw.status, raw.tai) = (libc::STA_NANO, 37);
        let fine = Discipline::of(libc::TIME_OK, &raw);
        assert_eq!(
            (fine.offset, fine.tai_offset),
            (Duration::from_nanos(70), Some(37))
        );
        raw.status |= libc::STA_UNSYNC;
        assert!(!Discipline::of(libc::TIME_OK, &raw).synchronized);
        raw.status = 0;
        assert!(!Discipline::of(libc::TIME_ERROR, &raw).synchronized);
    }
}
