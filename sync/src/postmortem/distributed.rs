//! A trace that several ranks share, and correct together: each keeps the events of its own locations only.
//!
//! All ranks add all events to a [`PartBuilder`], in the same order; it keeps those of the processes that are this rank's,
//! and the other ends of their messages. What is done with a [`TracePart`] is done by all ranks together, and gives what
//! one rank would have found in the whole trace, bit for bit, also where it is an error.
//!
//! ```
//! use downbeat_clock_core::Timestamp;
//! use downbeat_sync::postmortem::{
//!     Action, ControlledLogicalClock, Latencies, Matching, PartBuilder, PartError, Place, Shares, TraceError,
//! };
//! use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! // Two processes with one thread and one event each, for two ranks.
//! let shares = Shares::new(2, &[(0, 1), (1, 1)]);
//! let times = ThreadCluster::new(2).run(|comm| {
//!     let mut builder = PartBuilder::new(Matching::default(), shares.clone(), comm.rank());
//!     let sender = builder.add_location(Place { node: 0, process: 0 })?;
//!     let receiver = builder.add_location(Place { node: 1, process: 1 })?;
//!     let world = builder.add_communicator(&[sender, receiver])?;
//!     builder.push(sender, Timestamp::from_nanos(500), Action::Send { to: receiver, communicator: world, tag: 7 })?;
//!     builder.push(receiver, Timestamp::from_nanos(300), Action::Receive { from: sender, communicator: world, tag: 7 })?;
//!     block_on_ready(async {
//!         let part = builder.finish(comm).await?;
//!         let corrected = ControlledLogicalClock::new(Latencies::ZERO).forward_part(&part, comm).await?;
//!         Ok::<_, PartError>(corrected.times()[comm.rank() as usize].clone())
//!     })
//! })?;
//! // Either rank has its own.
//! assert_eq!(times, [Ok(vec![Timestamp::from_nanos(500)]), Ok(vec![Timestamp::from_nanos(500)])]);
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//! A rank needs memory for its own events as for a trace; 20 bytes more for every message with another rank; for every
//! collective operation in which it takes part about 80 bytes, and of scans and exscans about 50 for each member
//! elsewhere. Of all others it keeps 16 bytes for each location, and the members of communicators.
//!
//! Ranks exchange what they have for each other whenever all of them wait: so this takes as many steps as there are
//! messages between ranks that wait for one another, one by one.

mod backward;
mod cycle;
mod exchange;
mod forward;
mod keeping;
mod operations;
mod part;
#[cfg(test)]
mod tests;
mod totals;
mod verdict;

use core::fmt;

pub use forward::CorrectedPart;
pub(super) use keeping::Keeping;
pub use keeping::Shares;
pub use part::{PartBuilder, TracePart};
pub use totals::Totals;

use super::{Cycle, Misfit, TraceError};
use crate::CommError;

/// Why ranks cannot go on with a trace: all of them get the same, unless a rank is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartError {
    /// Events are no trace.
    Trace(TraceError),
    /// Events wait for each other in a circle.
    Cycle(Cycle),
    /// There are not as many times as events.
    Misfit(Misfit),
    /// A message did not get through.
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
