//! Errors of a correction.

use downbeat_sync::CommError;
use thiserror::Error;

use super::check::TimesMismatch;
use super::cycle::Cycle;
use super::presync::ClockOffsetError;
use super::{NoRoom, TraceError};

/// Error of a correction. All ranks get the same one, unless a rank is gone.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CorrectionError {
    /// The events are not a valid trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Events wait for each other in a cycle.
    #[error(transparent)]
    Cycle(#[from] Cycle),
    /// The number of times is not that of events.
    #[error(transparent)]
    Misfit(#[from] TimesMismatch),
    /// Clocks were compared in a way that cannot have happened.
    #[error(transparent)]
    Clocks(#[from] ClockOffsetError),
    /// The true times belong to another trace.
    #[error("the true times belong to another trace")]
    OtherTruth,
    /// This number of violations is left, which is a bug.
    #[error("{}, which is a bug in this program", match .0 {
        1 => "1 violation remains".to_owned(),
        count => format!("{count} violations remain"),
    })]
    Violated(u64),
    /// Communication failed.
    #[error(transparent)]
    Comm(#[from] CommError),
}

impl From<NoRoom> for CorrectionError {
    fn from(why: NoRoom) -> Self {
        Self::Trace(why.into())
    }
}
