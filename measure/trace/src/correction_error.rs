//! Errors of a correction.

use core::fmt;

use super::check::Misfit;
use super::cycle::Cycle;
use super::presync::ClockOffsetError;
use super::{NoRoom, TraceError};
use downbeat_sync::CommError;

/// Error of a correction. All ranks get the same one, unless a rank is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CorrectionError {
    /// The events are not a valid trace.
    Trace(TraceError),
    /// Events wait for each other in a cycle.
    Cycle(Cycle),
    /// The number of times is not that of events.
    Misfit(Misfit),
    /// Clocks were compared in a way that cannot have happened.
    Clocks(ClockOffsetError),
    /// The true times belong to another trace.
    OtherTruth,
    /// This number of violations is left, which is a bug.
    Violated(u64),
    /// Communication failed.
    Comm(CommError),
}

impl fmt::Display for CorrectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(why) => why.fmt(f),
            Self::Cycle(why) => why.fmt(f),
            Self::Misfit(why) => why.fmt(f),
            Self::Clocks(why) => why.fmt(f),
            Self::OtherTruth => f.write_str("the true times belong to another trace"),
            Self::Violated(1) => f.write_str("1 violation remains, which is a bug in this program"),
            Self::Violated(count) => {
                write!(
                    f,
                    "{count} violations remain, which is a bug in this program"
                )
            }
            Self::Comm(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for CorrectionError {}

impl From<TraceError> for CorrectionError {
    fn from(why: TraceError) -> Self {
        Self::Trace(why)
    }
}

impl From<NoRoom> for CorrectionError {
    fn from(why: NoRoom) -> Self {
        Self::Trace(why.into())
    }
}

impl From<Cycle> for CorrectionError {
    fn from(why: Cycle) -> Self {
        Self::Cycle(why)
    }
}

impl From<CommError> for CorrectionError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}
