//! Why a synchronization failed.

use core::fmt;

use downbeat_clock_core::{Duration, FitError, ModelError};

use crate::CommError;

/// Why ranks did not learn each other's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncError {
    /// A message did not get through.
    Comm(CommError),
    /// There is no memory for so many exchanges.
    TooManyExchanges(u32),
    /// A clock stepped back, the stamps give no offset, or the offsets no line.
    Fit(FitError),
    /// The clocks have no model: they are centuries apart, or drift apart as no clocks do.
    Model(ModelError),
    /// The ranks were asked for different algorithms.
    DifferentAlgorithms,
    /// This rank does not read the source of time that rank 0 reads.
    OtherSource {
        /// What this rank shows, by the model of rank 0, minus what rank 0 shows.
        offset: Duration,
        /// How far that can be wrong.
        half_width: Duration,
    },
    /// This rank did its part, but another failed: the lowest of those that did.
    OtherRank(u32),
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(why) => why.fmt(f),
            Self::TooManyExchanges(exchanges) => {
                write!(f, "there is no memory for {exchanges} exchanges")
            }
            Self::Fit(why) => why.fmt(f),
            Self::Model(why) => why.fmt(f),
            Self::DifferentAlgorithms => {
                f.write_str("the ranks were asked for different algorithms")
            }
            Self::OtherSource { offset, half_width } => write!(
                f,
                "the ranks do not share a source of time: this one is {offset} +- {half_width} ahead of its first"
            ),
            Self::OtherRank(rank) => write!(f, "rank {rank} failed"),
        }
    }
}

impl core::error::Error for SyncError {}

impl From<CommError> for SyncError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}

impl From<FitError> for SyncError {
    fn from(why: FitError) -> Self {
        Self::Fit(why)
    }
}

impl From<ModelError> for SyncError {
    fn from(why: ModelError) -> Self {
        Self::Model(why)
    }
}
