//! Rules that decide when there are enough observations.

mod decay;
mod label;
mod near_least;
mod progress;
mod time_slice;

use core::fmt;

use downbeat_clock_core::Duration;

pub use decay::Decay;
pub use progress::StoppingProgress;

use crate::error::MethodError;
use downbeat_records::stats::Confidence;

/// Rule that decides when there are enough observations.
///
/// Every measurement ends: a time slice limits the time and, with MOST, the number of all observations; the other rules count valid
/// ones up to MOST, and four times that number if there are invalid ones among them. `decay`, as in mpicroscope, counts all.
///
/// Calls depend on those shortly before them, so that many in a short time show less than they seem to. `fill` spends all of its
/// time, and thins what would take too much memory. `rse` and `interval` estimate the error of the mean by [`BatchMeans`]; they
/// go on while there are too few observations for that. With `/iid`, as in the suites that they come from, they take run-times
/// for independent, and end too early if they are not.
///
/// [`BatchMeans`]: downbeat_records::stats::BatchMeans
///
/// # Labels
/// | rule | label | example |
/// |---|---|---|
/// | a count | `count/MOST` | `count/1000` |
/// | a time slice | `time/SLICE/MOST` | `time/500ms/100000` |
/// | a time slice that is filled | `fill/SLICE/KEEP` | `fill/500ms/20000` |
/// | relative standard error of the mean | `rse/BOUND/LEAST/MOST` | `rse/0.025/8/1000` |
/// | the same of SKaMPI | `rse/BOUND/LEAST/MOST/iid` | `rse/0.025/8/1000/iid` |
/// | interval of the mean | `interval/CONFIDENCE/BOUND/LEAST/MOST` | `interval/0.95/0.025/5/1000` |
/// | the same of MPIBlib | `interval/CONFIDENCE/BOUND/LEAST/MOST/iid` | `interval/0.95/0.025/5/1000/iid` |
/// | mpicroscope's decay | `decay/linear/BATCH/MOST`, `decay/exponential/BATCH/MOST` | `decay/linear/100/10000` |
/// | mpptest's run-times near the minimum | `near/BOUND/TIMES/LEAST/MOST` | `near/0.05/3/4/30` |
///
/// ```
/// use downbeat_clock_core::Duration;
/// use downbeat_measure::stopping::{StopReason, StoppingProgress, Stopping};
///
/// let rule: Stopping = "rse/0.1/4/100/iid".parse()?;
/// let mut progress = StoppingProgress::new(rule);
/// assert_eq!(progress.next(&[], 0, Duration::ZERO), 4);
/// // The mean is 10 and its standard error 0.74, which is within a tenth of the mean.
/// assert_eq!(progress.next(&[9.0, 11.0, 8.5, 11.5], 4, Duration::from_micros(40)), 0);
/// assert_eq!(progress.stop_reason(), Some(StopReason::Precise));
/// # Ok::<(), downbeat_measure::MethodError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stopping {
    /// A number of valid observations.
    Count {
        /// Number of valid observations.
        most: u32,
    },
    /// A time slice.
    TimeSlice {
        /// Time since the start of the first observation.
        slice: Duration,
        /// Greatest number of observations.
        most: u32,
    },
    /// A time slice that is filled, whatever the number of observations. Of more than `keep`, evenly spaced ones are kept, at
    /// least about half as many.
    Fill {
        /// Time since the start of the first observation.
        slice: Duration,
        /// Greatest number of observations that are kept.
        keep: u32,
    },
    /// Until the standard error of the mean run-time is at most a share of the mean, as in SKaMPI.
    RelativeError {
        /// Share of the mean or, for mpptest, of the minimum.
        bound: f64,
        /// Least number of valid observations, and number of observations between two checks; at least 2.
        least: u32,
        /// Greatest number of valid observations.
        most: u32,
        /// True to take run-times for independent, as SKaMPI does.
        independent: bool,
    },
    /// Until the half-width of the confidence interval of the mean run-time is at most a share of the mean, as in MPIBlib.
    Interval {
        /// Confidence of the interval.
        confidence: Confidence,
        /// Share of the mean or, for mpptest, of the minimum.
        bound: f64,
        /// Least number of valid observations; at least 2.
        least: u32,
        /// Greatest number of valid observations.
        most: u32,
        /// True to take run-times for independent, as MPIBlib does.
        independent: bool,
    },
    /// mpicroscope: until none of `most` observations remain; every batch without a new minimum run-time reduces the number
    /// of remaining observations.
    Decay {
        /// Reduction after a batch without a new minimum.
        decay: Decay,
        /// Number of observations of a batch.
        batch: u32,
        /// Greatest number of observations.
        most: u32,
    },
    /// mpptest: until a number of run-times were within a share of the minimum.
    NearLeast {
        /// Share of the mean or, for mpptest, of the minimum.
        bound: f64,
        /// Number of run-times near the minimum. A new minimum restarts the count.
        times: u32,
        /// Number of valid observations at the beginning that do not count.
        least: u32,
        /// Greatest number of valid observations.
        most: u32,
    },
}

/// Reason why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The requested number of observations was made.
    Count,
    /// The time was over.
    TimeSlice,
    /// The mean was precise enough.
    Precise,
    /// No new minimum run-time was found for long enough.
    Decayed,
    /// Enough run-times were near the minimum.
    NearLeast,
    /// The greatest number of observations was reached before the rule was satisfied.
    Most,
}

/// Writes the name in records.
impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::TimeSlice => "time-slice",
            Self::Precise => "precise",
            Self::Decayed => "decayed",
            Self::NearLeast => "near-least",
            Self::Most => "most",
        })
    }
}

impl Stopping {
    /// Returns the rule if its parameters are valid.
    ///
    /// # Errors
    /// If a parameter is out of its range, or two contradict each other.
    pub fn checked(self) -> Result<Self, MethodError> {
        let at_least = |name, found: u32, least| {
            if found >= least {
                Ok(())
            } else {
                Err(MethodError::TooFew { name, found, least })
            }
        };
        let in_order = |name, least, most| {
            if least <= most {
                Ok(())
            } else {
                Err(MethodError::Reversed { name, least, most })
            }
        };
        let share = |bound: f64| {
            if bound.is_finite() && bound > 0.0 {
                Ok(())
            } else {
                Err(MethodError::Bound(bound))
            }
        };
        at_least(MOST, self.most(), 1)?;
        match self {
            Self::Count { .. } => {}
            Self::TimeSlice { slice, .. } | Self::Fill { slice, .. } if slice <= Duration::ZERO => {
                return Err(MethodError::Slice(slice));
            }
            Self::TimeSlice { .. } => {}
            Self::Fill { keep, .. } => at_least(KEEP, keep, 1)?,
            Self::RelativeError {
                bound, least, most, ..
            }
            | Self::Interval {
                bound, least, most, ..
            } => {
                share(bound)?;
                // A single observation has no standard error.
                at_least(LEAST, least, 2)?;
                in_order(LEAST, least, most)?;
            }
            Self::Decay { batch, most, .. } => {
                at_least(BATCH, batch, 1)?;
                in_order(BATCH, batch, most)?;
            }
            Self::NearLeast {
                bound,
                times,
                least,
                most,
            } => {
                share(bound)?;
                at_least(TIMES, times, 1)?;
                in_order(LEAST, least, most)?;
            }
        }
        Ok(self)
    }

    /// Returns the time slice, if the rule is one.
    pub const fn slice(&self) -> Option<Duration> {
        match self {
            Self::TimeSlice { slice, .. } | Self::Fill { slice, .. } => Some(*slice),
            _ => None,
        }
    }

    /// Returns true if the rule estimates the error of the mean of observations that may depend on each other.
    pub const fn needs_error(&self) -> bool {
        match self {
            Self::RelativeError { independent, .. } | Self::Interval { independent, .. } => {
                !*independent
            }
            _ => false,
        }
    }

    /// Returns the greatest number of observations that are kept, if not all are.
    pub const fn keep(&self) -> Option<u32> {
        match self {
            Self::Fill { keep, .. } => Some(*keep),
            _ => None,
        }
    }

    /// Returns the number of observations that may be made yet, after a number of valid ones and one of all.
    fn allowed(&self, valid: u32, all: u32) -> u32 {
        /// More invalid observations show that waiting does not help.
        const MADE_PER_VALID: u32 = 4;
        match *self {
            Self::TimeSlice { .. } | Self::Fill { .. } | Self::Decay { .. } => {
                self.most().saturating_sub(all)
            }
            Self::Count { most }
            | Self::RelativeError { most, .. }
            | Self::Interval { most, .. }
            | Self::NearLeast { most, .. } => {
                let made = most.saturating_mul(MADE_PER_VALID);
                most.saturating_sub(valid).min(made.saturating_sub(all))
            }
        }
    }

    /// Returns the greatest number of observations: of valid ones, unless the rule is a time slice or a decay.
    pub fn most(&self) -> u32 {
        match *self {
            Self::Fill { .. } => u32::MAX,
            Self::Count { most }
            | Self::TimeSlice { most, .. }
            | Self::RelativeError { most, .. }
            | Self::Interval { most, .. }
            | Self::Decay { most, .. }
            | Self::NearLeast { most, .. } => most,
        }
    }
}

impl Stopping {
    /// Returns the rule with at most this number of observations, if it is a count.
    pub(crate) fn at_most(self, limit: u32) -> Self {
        match self {
            Self::Count { most } => Self::Count {
                most: most.min(limit),
            },
            other => other,
        }
    }
}

// Names of parameters in the forms of labels and in errors.
const LEAST: &str = "LEAST";
const MOST: &str = "MOST";
const KEEP: &str = "KEEP";
const BATCH: &str = "BATCH";
const TIMES: &str = "TIMES";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parameters_are_refused() {
        let error = |rule: Stopping| rule.checked().unwrap_err();
        let too_few = |name, found, least| MethodError::TooFew { name, found, least };
        assert_eq!(error(Stopping::Count { most: 0 }), too_few(MOST, 0, 1));
        for nanos in [0, -1] {
            let slice = Duration::from_nanos(nanos);
            assert_eq!(
                error(Stopping::TimeSlice { slice, most: 9 }),
                MethodError::Slice(slice)
            );
        }
        for bound in [0.0, -0.5, f64::INFINITY] {
            let rule = Stopping::RelativeError {
                bound,
                least: 2,
                most: 9,
                independent: true,
            };
            assert_eq!(error(rule), MethodError::Bound(bound));
        }
        assert!(
            Stopping::RelativeError {
                bound: f64::NAN,
                least: 2,
                most: 9,
                independent: false,
            }
            .checked()
            .is_err()
        );
        let interval = |least, most| Stopping::Interval {
            confidence: Confidence::USUAL,
            bound: 0.1,
            least,
            most,
            independent: false,
        };
        assert_eq!(error(interval(1, 9)), too_few(LEAST, 1, 2));
        assert_eq!(
            error(interval(10, 9)),
            MethodError::Reversed {
                name: LEAST,
                least: 10,
                most: 9
            }
        );
        assert!(interval(9, 9).checked().is_ok());
        let decay = |batch, most| Stopping::Decay {
            decay: Decay::Linear,
            batch,
            most,
        };
        assert_eq!(error(decay(0, 9)), too_few(BATCH, 0, 1));
        assert_eq!(
            error(decay(10, 9)),
            MethodError::Reversed {
                name: BATCH,
                least: 10,
                most: 9
            }
        );
        assert_eq!(decay(9, 9).checked(), Ok(decay(9, 9)));
        let near = |bound, times, least| Stopping::NearLeast {
            bound,
            times,
            least,
            most: 9,
        };
        assert_eq!(error(near(0.0, 3, 4)), MethodError::Bound(0.0));
        assert_eq!(error(near(0.1, 0, 4)), too_few(TIMES, 0, 1));
        assert_eq!(
            error(near(0.1, 3, 10)),
            MethodError::Reversed {
                name: LEAST,
                least: 10,
                most: 9
            }
        );
        assert!(near(0.1, 1, 0).checked().is_ok());
    }
}
