//! Trace that several ranks share and correct together: each keeps the events of its own locations
//! only.
//!
//! Every rank adds its events to a [`PartBuilder`], and learns the other ends of their messages
//! from other ranks. Operations on a [`TracePart`] are collective. Their results, errors included,
//! are those of one rank with the whole trace, bit for bit.

mod backward;
mod cycle;
mod exchange;
mod forward;
mod latencies;
mod operations;
mod part;
mod shares;
#[cfg(test)]
mod tests;
mod totals;
mod verdict;
mod words;

use core::fmt;

pub use forward::CorrectedPart;
pub use part::{PartBuilder, TracePart};
pub use shares::Shares;
pub use totals::Totals;

use super::cycle::Cycle;
use super::{Misfit, TraceError};
use downbeat_sync::CommError;

/// Error of the correction of a shared trace. All ranks get the same one, unless a rank is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartError {
    /// The events are not a valid trace.
    Trace(TraceError),
    /// Events wait for each other in a cycle.
    Cycle(Cycle),
    /// The number of times is not that of events.
    Misfit(Misfit),
    /// Communication failed.
    Comm(CommError),
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(why) => why.fmt(f),
            Self::Cycle(why) => why.fmt(f),
            Self::Misfit(why) => why.fmt(f),
            Self::Comm(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for PartError {}

impl From<TraceError> for PartError {
    fn from(why: TraceError) -> Self {
        Self::Trace(why)
    }
}

impl From<CommError> for PartError {
    fn from(why: CommError) -> Self {
        Self::Comm(why)
    }
}
