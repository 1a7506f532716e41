//! Errors of methods, of measurements, and of the memory that operations need.

use core::fmt;

use downbeat_clock_core::Duration;
use downbeat_records::ObservationState;
use downbeat_records::stats::StatsError;
use downbeat_sync::{Algorithm, CommError, SyncError};

/// A method, or a part of one, that is unknown or contradictory: an unknown name, a label that cannot be parsed, or a
/// parameter outside its range.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MethodError {
    /// The name is unknown.
    UnknownName {
        /// Kind of the thing that was looked up.
        kind: &'static str,
        /// Name that was given.
        name: String,
        /// Names that exist, as one text.
        known: String,
    },
    /// The number is not a power of two, or too large for an alignment.
    Alignment {
        /// Text or number that was given.
        found: String,
        /// Greatest alignment.
        most: usize,
    },
    /// The text is no layout of messages.
    Layout(String),
    /// A stopping rule has the wrong number of parameters.
    ParameterCount {
        /// Form of the rule's label.
        form: &'static str,
    },
    /// A parameter of a stopping rule cannot be parsed.
    Parameter {
        /// Name of the parameter in the form of the rule's label.
        name: &'static str,
        /// Text that was given.
        found: String,
    },
    /// A number of observations is too small.
    TooFew {
        /// Name of the parameter in the form of the rule's label.
        name: &'static str,
        /// Value that was given.
        found: u32,
        /// Least allowed value.
        least: u32,
    },
    /// The least number of observations, or the size of a batch, exceeds the greatest number of observations.
    Reversed {
        /// Name of the parameter that is too large, as in the form of the rule's label.
        name: &'static str,
        /// Value of that parameter.
        least: u32,
        /// Greatest number of observations.
        most: u32,
    },
    /// The bound of a stopping rule is not a positive number.
    Bound(f64),
    /// The time slice of a stopping rule is not longer than 0.
    Slice(Duration),
    /// The text behind the name of a processing is not an option of it.
    ProcessingOption(String),
    /// MPIBench's factor for outliers is not a number of at least 1.
    OutlierFactor(f64),
    /// The processing needs the time of every single call, and the scheme measures only means of several.
    NeedsSingleCalls {
        /// Quantity that cannot be derived from means.
        what: &'static str,
    },
    /// The processing compares timestamps of different ranks, and the scheme uses local clocks.
    NeedsGlobalClock,
    /// Caches cannot be overwritten between calls that are timed together.
    NotInSeries,
}

impl fmt::Display for MethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { kind, name, known } => {
                write!(f, "there is no {kind} \"{name}\"; there are {known}")
            }
            Self::Alignment { found, most } => write!(
                f,
                "an alignment is a power of two up to {most}, which {found} is not"
            ),
            Self::Layout(text) => write!(
                f,
                "\"{text}\" is no layout: there are contiguous, vector/BLOCK/STRIDE, indexed/BLOCK/STRIDE and struct/BLOCK/STRIDE, with \
                 1 <= BLOCK <= STRIDE <= 2^20 elements"
            ),
            Self::ParameterCount { form } => write!(f, "the rule is written {form}"),
            Self::Parameter { name, found } => write!(f, "{name} cannot be \"{found}\""),
            Self::TooFew { name, found, least } => {
                write!(f, "{name} must be at least {least}, and is {found}")
            }
            Self::Reversed { name, least, most } => {
                write!(
                    f,
                    "{name}, which is {least}, is above MOST, which is {most}"
                )
            }
            Self::Bound(bound) => write!(f, "BOUND must be a share above 0, and is {bound}"),
            Self::Slice(slice) => write!(f, "SLICE must be longer than 0, and is {slice}"),
            Self::ProcessingOption(text) => {
                write!(f, "\"{text}\" is not an option of this processing")
            }
            Self::OutlierFactor(factor) => {
                write!(
                    f,
                    "the factor for outliers is a number of at least 1, which {factor} is not"
                )
            }
            Self::NotInSeries => f.write_str(
                "this scheme times several calls together, and caches cannot be overwritten between them; use cold-walk, or a scheme \
                 that times each call",
            ),
            Self::NeedsSingleCalls { what } => {
                write!(
                    f,
                    "this processing needs {what}, and the scheme measures only means of many calls"
                )
            }
            Self::NeedsGlobalClock => f.write_str(
                "this processing compares the end of one rank with the start of another, and the scheme has no clock \
                 that all ranks share",
            ),
        }
    }
}

impl core::error::Error for MethodError {}

/// A measurement that failed, or observations that cannot be processed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MeasureError {
    /// A rank is gone, or could not be reached. Only this rank knows: others may be waiting for it.
    Comm(CommError),
    /// The operation failed. Possibly only this rank knows.
    Operation(CommError),
    /// Another rank failed.
    OtherRank(u32),
    /// The global clock could not be synchronized.
    Synchronization(Box<Algorithm>, SyncError),
    /// The clock did not advance during a wait. Only this rank knows.
    ClockStopped,
    /// The clock showed no more at this offset than at the one before: it was set back.
    ClockSetBack {
        /// Index of the offset.
        index: usize,
    },
    /// The scheme or the analysis needs one clock for all ranks.
    NeedsGlobalClock,
    /// The readings of the clock are unordered: calls can begin before the reading at their start, or end after the other.
    UnorderedClock,
    /// The method is contradictory.
    Method(MethodError),
    /// The root is not one of the ranks.
    NoSuchRoot {
        /// Rank that was given as the root.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// No observation is valid.
    NothingValid {
        /// Number of observations that began late.
        late: usize,
        /// Number of observations that took too long.
        long: usize,
        /// Number of observations whose clocks had drifted too far.
        drifted: usize,
    },
    /// A time is infinite or not a number.
    NotFinite,
    /// Imbalance exists only between ranks, and there is only one.
    OneRank,
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(why) => why.fmt(f),
            Self::Operation(why) => write!(f, "the operation failed: {why}"),
            Self::OtherRank(rank) => write!(f, "rank {rank} failed"),
            Self::Synchronization(algorithm, why) => write!(f, "{algorithm}: {why}"),
            Self::ClockStopped => f.write_str("the clock stands still"),
            Self::ClockSetBack { index } => {
                write!(f, "the clock was set back before offset {index}")
            }
            Self::NeedsGlobalClock => f.write_str("this needs one clock for all ranks"),
            Self::UnorderedClock => f.write_str(
                "the readings of this clock are unordered, so that calls can move out of the interval that they time",
            ),
            Self::Method(why) => why.fmt(f),
            Self::NoSuchRoot { root, ranks } => {
                write!(f, "rank {root} cannot be root among {ranks} ranks")
            }
            Self::NothingValid {
                late: 0,
                long: 0,
                drifted: 0,
            } => f.write_str("there are no observations"),
            Self::NothingValid {
                late,
                long,
                drifted,
            } => {
                let all = late + long + drifted;
                write!(
                    f,
                    "none of {all} observations is valid: {late} began late, {long} took too long"
                )?;
                match drifted {
                    0 => Ok(()),
                    _ => write!(f, ", and the clocks had drifted in {drifted}"),
                }
            }
            Self::NotFinite => f.write_str("a time is not a finite number"),
            Self::OneRank => f.write_str("imbalance is between ranks, and there is only one"),
        }
    }
}

impl core::error::Error for MeasureError {}

impl MeasureError {
    /// Error for observations in these states, none of which is valid.
    pub(crate) fn nothing(states: &[ObservationState]) -> Self {
        let count = |state| states.iter().filter(|found| **found == state).count();
        let [late, long, drifted] = ObservationState::INVALID.map(count);
        Self::NothingValid {
            late,
            long,
            drifted,
        }
    }

    /// Returns true if the other ranks do not know of the failure, and may be waiting for this one.
    pub fn is_local(&self) -> bool {
        matches!(
            self,
            Self::Comm(_) | Self::Operation(_) | Self::ClockStopped
        )
    }
}

impl From<CommError> for MeasureError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

impl From<MethodError> for MeasureError {
    fn from(why: MethodError) -> Self {
        Self::Method(why)
    }
}

impl From<StatsError> for MeasureError {
    fn from(why: StatsError) -> Self {
        match why {
            StatsError::Empty => Self::nothing(&[]),
            // Other variants, also future ones, are about values that cannot be ordered.
            _ => Self::NotFinite,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_give_the_reason() {
        let nothing = |late, long, drifted| {
            let states = [
                vec![ObservationState::Late; late],
                vec![ObservationState::Long; long],
                vec![ObservationState::Drifted; drifted],
            ];
            MeasureError::nothing(&states.concat()).to_string()
        };
        assert_eq!(
            nothing(300, 200, 0),
            "none of 500 observations is valid: 300 began late, 200 took too long"
        );
        assert_eq!(
            nothing(1, 0, 2),
            "none of 3 observations is valid: 1 began late, 0 took too long, and the clocks had drifted in 2"
        );
        assert_eq!(nothing(0, 0, 0), "there are no observations");
        assert_eq!(
            MeasureError::NoSuchRoot { root: 4, ranks: 4 }.to_string(),
            "rank 4 cannot be root among 4 ranks"
        );
        let what = "the slowest rank of each call";
        assert_eq!(
            MeasureError::from(MethodError::NeedsSingleCalls { what }).to_string(),
            "this processing needs the slowest rank of each call, and the scheme measures only means of many calls"
        );
        let global = MethodError::NeedsGlobalClock.to_string();
        assert!(global.ends_with("has no clock that all ranks share"));
        assert_eq!(
            MethodError::OutlierFactor(0.5).to_string(),
            "the factor for outliers is a number of at least 1, which 0.5 is not"
        );
    }
}
