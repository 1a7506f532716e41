//! Errors of region timers and their reports.

use core::fmt;

use downbeat_clock_core::{Duration, ModelError};
#[cfg(feature = "ranks")]
use downbeat_sync::CommError;
use downbeat_timers::ClockUnavailable;
use downbeat_timers::calibration::CalibrationError;

/// An error of region timers or of their reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum RegionError {
    /// A region was entered before [`configure`](crate::configure) was called, which fixed the settings.
    TooLate,
    /// The time stamp counter cannot be used.
    Tsc(ClockUnavailable),
    /// The clock of the system cannot be used.
    System(ClockUnavailable),
    /// The rate of the time stamp counter cannot be measured.
    Calibration(CalibrationError),
    /// The tick cannot be used as a unit.
    Scale(ModelError),
    /// A variable of the environment has an invalid value.
    Variable {
        /// Its name.
        name: &'static str,
        /// The reason.
        why: String,
    },
    /// Two reports have these different ticks: a bin of one may be several bins of the other.
    ReportTicksDiffer([Duration; 2]),
    /// A merged report would have more than 2^32 ranks.
    TooManyRanks,
    /// The profiles that are gathered have different ticks.
    #[cfg(feature = "ranks")]
    TicksDiffer,
    /// A message failed while profiles were gathered.
    #[cfg(feature = "ranks")]
    Comm(CommError),
    /// A rank sent bytes that are not a report.
    #[cfg(feature = "ranks")]
    NotAReport {
        /// The rank.
        from: u32,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate => {
                f.write_str("a region was entered before the region timers were configured")
            }
            Self::Tsc(why) => why.fmt(f),
            Self::System(why) => why.fmt(f),
            Self::Calibration(why) => why.fmt(f),
            Self::Scale(why) => why.fmt(f),
            Self::Variable { name, why } => write!(f, "{name}: {why}"),
            Self::ReportTicksDiffer([one, other]) => {
                write!(f, "a tick is {one} in one report, and {other} in the other")
            }
            Self::TooManyRanks => f.write_str("there are more than 2^32 ranks"),
            #[cfg(feature = "ranks")]
            Self::TicksDiffer => f.write_str("the ranks have different ticks"),
            #[cfg(feature = "ranks")]
            Self::Comm(why) => why.fmt(f),
            #[cfg(feature = "ranks")]
            Self::NotAReport { from } => write!(f, "rank {from} sent something else than a report"),
        }
    }
}

impl core::error::Error for RegionError {}

#[cfg(feature = "ranks")]
impl From<CommError> for RegionError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}
