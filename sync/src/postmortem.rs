//! Correcting the times of a trace after the fact.

mod builder;
mod channels;
mod error;
mod kind;
mod teams;
mod trace;

pub use builder::{Matching, TraceBuilder};
pub use error::TraceError;
pub use kind::{Action, CollectiveKind, Pattern};
pub use trace::{Collective, CommunicatorId, EventId, LeftOut, Location, LocationId, Member, Message, Place, Trace};
