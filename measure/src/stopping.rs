//! When enough was measured.

mod decay;
mod label;
mod near_least;
mod precision;
mod progress;
mod time_slice;

use core::fmt;

use downbeat_clock_core::Duration;

pub use decay::Decay;
pub use progress::StoppingProgress;

use crate::error::MethodError;
use downbeat_records::stats::Confidence;

/// When enough was measured. Every rule has a greatest number of observations, in which also those count that are not
/// valid: so nothing is measured for ever.
///
/// # Labels
/// | rule | label | example |
/// |---|---|---|
/// | a count | `count/MOST` | `count/1000` |
/// | a time slice | `time/SLICE/MOST` | `time/500ms/100000` |
/// | SKaMPI's relative standard error | `rse/BOUND/LEAST/MOST` | `rse/0.025/8/1000` |
/// | MPIBlib's interval of the mean | `interval/CONFIDENCE/BOUND/LEAST/MOST` | `interval/0.95/0.025/5/1000` |
/// | mpicroscope's decay | `decay/linear/BATCH/MOST`, `decay/exponential/BATCH/MOST` | `decay/linear/100/10000` |
/// | mpptest's neighbours of the least | `near/BOUND/TIMES/LEAST/MOST` | `near/0.05/3/4/30` |
///
/// ```
/// use downbeat_clock_core::Duration;
/// use downbeat_measure::{StopReason, StoppingProgress, Stopping};
///
/// let rule: Stopping = "rse/0.1/4/100".parse()?;
/// let mut progress = StoppingProgress::new(rule);
/// assert_eq!(progress.next(&[], 0, Duration::ZERO), 4);
/// // The mean is 10, its standard error 0.74: within a tenth, so that this is precise enough.
/// assert_eq!(progress.next(&[9.0, 11.0, 8.5, 11.5], 4, Duration::from_micros(40)), 0);
/// assert_eq!(progress.stop_reason(), Some(StopReason::Precise));
/// # Ok::<(), downbeat_measure::MethodError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stopping {
    /// After this many observations.
    Count {
        /// How many.
        most: u32,
    },
    /// When so much time has passed.
    TimeSlice {
        /// Since the first observation began.
        slice: Duration,
        /// The greatest number of observations.
        most: u32,
    },
    /// SKaMPI: when the standard error of the mean run-time is at most this share of it.
    RelativeError {
        /// The share.
        bound: f64,
        /// The least number of valid observations, and how many are made between two looks at them; at least 2.
        least: u32,
        /// The greatest number of observations.
        most: u32,
    },
    /// MPIBlib: when the interval that the mean run-time is in reaches no further from it than this share of it.
    Interval {
        /// That of the interval.
        confidence: Confidence,
        /// The share.
        bound: f64,
        /// The least number of valid observations; at least 2.
        least: u32,
        /// The greatest number of observations.
        most: u32,
    },
    /// mpicroscope: when nothing is left of `most` observations, of which more fall away after every batch without
    /// a new least run-time.
    Decay {
        /// How many fall away.
        decay: Decay,
        /// How many observations are made before the next look at the least run-time.
        batch: u32,
        /// The greatest number of observations.
        most: u32,
    },
    /// mpptest: when so many run-times were within this share of the least one.
    NearLeast {
        /// The share.
        bound: f64,
        /// How many. A new least run-time lets the counting begin again.
        times: u32,
        /// How many of the first valid observations do not count.
        least: u32,
        /// The greatest number of observations.
        most: u32,
    },
}

/// Why nothing more was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// As many observations were made as were asked for.
    Count,
    /// The time was over.
    TimeSlice,
    /// The mean was known well enough.
    Precise,
    /// No new least run-time was found for long enough.
    Decayed,
    /// The least run-time was nearly met often enough.
    NearLeast,
    /// The greatest number of observations was made before the rule was content.
    Most,
}

/// As it is written in records.
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
    /// The same rule, if its parameters make sense.
    ///
    /// # Errors
    /// Which of them does not.
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
            Self::TimeSlice { slice, .. } if slice <= Duration::ZERO => {
                return Err(MethodError::Slice(slice));
            }
            Self::TimeSlice { .. } => {}
            Self::RelativeError { bound, least, most }
            | Self::Interval {
                bound, least, most, ..
            } => {
                share(bound)?;
                // One observation says nothing of how far others would be from it.
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

    /// How long observations are made, if that is what counts.
    pub const fn slice(&self) -> Option<Duration> {
        if let Self::TimeSlice { slice, .. } = self {
            Some(*slice)
        } else {
            None
        }
    }

    /// The greatest number of observations.
    pub fn most(&self) -> u32 {
        match *self {
            Self::Count { most }
            | Self::TimeSlice { most, .. }
            | Self::RelativeError { most, .. }
            | Self::Interval { most, .. }
            | Self::Decay { most, .. }
            | Self::NearLeast { most, .. } => most,
        }
    }
}

/// What the numbers of observations are called in labels and errors.
const LEAST: &str = "LEAST";
const MOST: &str = "MOST";
const BATCH: &str = "BATCH";
const TIMES: &str = "TIMES";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_with_parameters_that_make_no_sense_are_refused() {
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
            };
            assert_eq!(error(rule), MethodError::Bound(bound));
        }
        assert!(
            Stopping::RelativeError {
                bound: f64::NAN,
                least: 2,
                most: 9
            }
            .checked()
            .is_err()
        );
        let interval = |least, most| Stopping::Interval {
            confidence: Confidence::USUAL,
            bound: 0.1,
            least,
            most,
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
