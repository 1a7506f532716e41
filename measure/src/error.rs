//! Errors of methods, of measurements, and of the memory that operations need.

use downbeat_clock_core::Duration;
use downbeat_records::stats::StatsError;
use downbeat_records::{ObservationState, Observations};
use downbeat_sync::collective::SharedError;
use downbeat_sync::{Algorithm, Comm, CommError, SyncError};
use thiserror::Error;

/// A method, or a part of one, that is unknown or contradictory: an unknown name, a label that cannot be parsed, or a
/// parameter outside its range.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MethodError {
    /// The name is unknown.
    #[error("there is no {kind} \"{name}\"; there are {known}")]
    UnknownName {
        /// Kind of the thing that was looked up.
        kind: &'static str,
        /// Name that was given.
        name: String,
        /// Names that exist, as one text.
        known: String,
    },
    /// The number is not a power of two, or too large for an alignment.
    #[error("an alignment is a power of two up to {most}, which {found} is not")]
    Alignment {
        /// Text or number that was given.
        found: String,
        /// Greatest alignment.
        most: usize,
    },
    /// The text is no layout of messages.
    #[error(
        "\"{0}\" is no layout: there are contiguous, vector/BLOCK/STRIDE, indexed/BLOCK/STRIDE and \
         struct/BLOCK/STRIDE, with 1 <= BLOCK <= STRIDE <= 2^20 elements"
    )]
    Layout(String),
    /// A stopping rule has the wrong number of parameters.
    #[error("the rule is written {form}")]
    ParameterCount {
        /// Form of the rule's label.
        form: &'static str,
    },
    /// A parameter of a stopping rule cannot be parsed.
    #[error("{name} cannot be \"{found}\"")]
    Parameter {
        /// Name of the parameter in the form of the rule's label.
        name: &'static str,
        /// Text that was given.
        found: String,
    },
    /// A number of observations is too small.
    #[error("{name} must be at least {least}, and is {found}")]
    TooFew {
        /// Name of the parameter in the form of the rule's label.
        name: &'static str,
        /// Value that was given.
        found: u32,
        /// Least allowed value.
        least: u32,
    },
    /// The least number of observations, or the size of a batch, exceeds the greatest number of observations.
    #[error("{name}, which is {least}, is above MOST, which is {most}")]
    Reversed {
        /// Name of the parameter that is too large, as in the form of the rule's label.
        name: &'static str,
        /// Value of that parameter.
        least: u32,
        /// Greatest number of observations.
        most: u32,
    },
    /// The bound of a stopping rule is not a positive number.
    #[error("BOUND must be a share above 0, and is {0}")]
    Bound(f64),
    /// The time slice of a stopping rule is not longer than 0.
    #[error("SLICE must be longer than 0, and is {0}")]
    Slice(Duration),
    /// The text behind the name of a processing is not an option of it.
    #[error("\"{0}\" is not an option of this processing")]
    ProcessingOption(String),
    /// MPIBench's factor for outliers is not a number of at least 1.
    #[error("the factor for outliers is a number of at least 1, which {0} is not")]
    OutlierFactor(f64),
    /// The processing needs the time of every single call, and the scheme measures only means of several.
    #[error("this processing needs {what}, and the scheme measures only means of many calls")]
    NeedsSingleCalls {
        /// Quantity that cannot be derived from means.
        what: &'static str,
    },
    /// The processing compares timestamps of different ranks, and the scheme uses local clocks.
    #[error(
        "this processing compares the end of one rank with the start of another, and the scheme \
         has no clock that all ranks share"
    )]
    NeedsGlobalClock,
    /// Caches cannot be overwritten between calls that are timed together.
    #[error(
        "this scheme times several calls together, and caches cannot be overwritten between them; \
         use cold-walk, or a scheme that times each call"
    )]
    NotInSeries,
}

/// A measurement that failed, or observations that cannot be processed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A rank is gone, or could not be reached. Only this rank knows: others may be waiting for it.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The operation failed. Possibly only this rank knows.
    #[error("the operation failed: {0}")]
    Operation(CommError),
    /// Another rank failed.
    #[error("rank {0} failed")]
    OtherRank(u32),
    /// The global clock could not be synchronized.
    #[error("{0}: {1}")]
    Synchronization(Box<Algorithm>, SyncError),
    /// The clock did not advance during a wait. Only this rank knows.
    #[error("the clock stands still")]
    ClockStopped,
    /// The clock showed no more at this offset than at the one before: it was set back.
    #[error("the clock was set back before offset {index}")]
    ClockSetBack {
        /// Index of the offset.
        index: usize,
    },
    /// The scheme or the analysis needs one clock for all ranks.
    #[error("this needs one clock for all ranks")]
    NeedsGlobalClock,
    /// The readings of the clock are unordered: calls can begin before the reading at their start, or end after the other.
    #[error(
        "the readings of this clock are unordered, so that calls can move out of the interval that \
         they time"
    )]
    UnorderedClock,
    /// The method is contradictory.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// The root is not one of the ranks.
    #[error("rank {root} cannot be root among {ranks} ranks")]
    NoSuchRoot {
        /// Rank that was given as the root.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// No observation is valid.
    #[error("{}", nothing_valid([*late, *long, *drifted]))]
    NothingValid {
        /// Number of observations that began late.
        late: usize,
        /// Number of observations that took too long.
        long: usize,
        /// Number of observations whose clocks had drifted too far.
        drifted: usize,
    },
    /// A time is infinite or not a number.
    #[error("a time is not a finite number")]
    NotFinite,
    /// Imbalance exists only between ranks, and there is only one.
    #[error("imbalance is between ranks, and there is only one")]
    OneRank,
}

/// A rank keeps its own error; the others learn which rank failed.
impl SharedError for MeasureError {
    async fn share<M: Comm>(_: &M, failed: u32, own: Option<Self>) -> Result<Self, CommError> {
        Ok(own.unwrap_or(Self::OtherRank(failed)))
    }
}

/// Describes observations that began late, took too long, or whose clocks had drifted: all of them.
fn nothing_valid([late, long, drifted]: [usize; 3]) -> String {
    let all = late + long + drifted;
    let of_clocks = match drifted {
        0 => String::new(),
        _ => format!(", and the clocks had drifted in {drifted}"),
    };
    match all {
        0 => "there are no observations".to_owned(),
        _ => format!(
            "none of {all} observations is valid: {late} began late, {long} took too long{of_clocks}"
        ),
    }
}

impl MeasureError {
    /// Error for observations of which none is valid.
    pub(crate) fn nothing(observations: &Observations) -> Self {
        let count = |state| observations.count(state);
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

impl From<StatsError> for MeasureError {
    fn from(why: StatsError) -> Self {
        match why {
            StatsError::Empty => Self::nothing(&Observations::default()),
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
            let counts = [late, long, drifted];
            let mut found = Observations::of_durations(&vec![1.0; counts.iter().sum()]);
            let states = ObservationState::INVALID.into_iter().zip(counts);
            let states = states.flat_map(|(state, count)| vec![state; count]);
            for (call, state) in found.0.iter_mut().zip(states) {
                call.state = state;
            }
            MeasureError::nothing(&found).to_string()
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
