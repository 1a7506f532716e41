//! Correcting the times of a trace after the fact.

mod builder;
mod channels;
mod check;
mod deviation;
mod error;
mod kind;
mod latencies;
mod presync;
mod teams;
mod trace;

pub use builder::{Matching, TraceBuilder};
pub use check::{Difference, Fault, Misfit, Relations, Reversal, Verdict};
pub use deviation::{Above, Deviation, Displacement, Intervals, TruthError};
pub use error::TraceError;
pub use kind::{Action, CollectiveKind, Pattern};
pub use latencies::Latencies;
pub use presync::{ClockMap, ClockMaps, ClockOwner, ClockSample, Interpolation, PreSyncError, PreSynchronization};
pub use trace::{Collective, CommunicatorId, EventId, LeftOut, Location, LocationId, Member, Message, Place, Trace};
