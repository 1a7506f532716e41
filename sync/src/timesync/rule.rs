//! Rules by which a session is condensed into one pair of times.

use core::fmt;
use core::str::FromStr;

/// Rule by which the exchanges of a session are condensed into one pair of times.
///
/// ```
/// use downbeat_sync::timesync::SessionRule;
///
/// assert_eq!("trace-collector".parse(), Ok(SessionRule::TraceCollector));
/// assert_eq!(SessionRule::default().to_string(), "lowest");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionRule {
    /// [Mean of the lowest twentieth](downbeat_clock_core::offset::LowestOffset) of the
    /// time differences in each direction: of messages that nothing delayed.
    #[default]
    Lowest,
    /// [Mean of all exchanges except the slowest
    /// tenth](downbeat_clock_core::offset::TraceCollectorOffset), as the Intel Trace
    /// Collector documents it.
    TraceCollector,
}

impl SessionRule {
    /// All rules.
    pub const ALL: [Self; 2] = [Self::Lowest, Self::TraceCollector];

    const fn name(self) -> &'static str {
        match self {
            Self::Lowest => "lowest",
            Self::TraceCollector => "trace-collector",
        }
    }
}

/// Formats as `lowest` or `trace-collector`.
impl fmt::Display for SessionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses the form that is printed.
impl FromStr for SessionRule {
    type Err = SessionRuleError;

    fn from_str(text: &str) -> Result<Self, SessionRuleError> {
        let found = Self::ALL.into_iter().find(|rule| rule.name() == text);
        found.ok_or_else(|| SessionRuleError(text.to_owned()))
    }
}

/// No rule has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRuleError(String);

impl fmt::Display for SessionRuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no rule \"{}\"; the rules are", self.0)?;
        for (rule, joint) in SessionRule::ALL.into_iter().zip([" ", " and "]) {
            write!(f, "{joint}{rule}")?;
        }
        Ok(())
    }
}

impl core::error::Error for SessionRuleError {}
