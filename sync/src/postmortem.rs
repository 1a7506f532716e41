//! Correcting the times of a trace after the fact.
//!
//! A [`TraceBuilder`] takes the events of all locations, and matches messages and collective operations; the
//! [`ControlledLogicalClock`] moves events of the [`Trace`] so that none of them depends on a later one.
//!
//! Times are those of clocks that were synchronized before, as well as that can be done from outside: with
//! [`ConstrainedSpline`](downbeat_clock_core::ConstrainedSpline), say, and [`Trace::map_times`].

mod backward;
mod builder;
mod channels;
mod correct;
mod error;
mod extremes;
mod forward;
mod gates;
mod kind;
mod knots;
mod latencies;
mod leeway;
mod limits;
mod stamps;
mod teams;
mod trace;
mod workers;

pub use backward::Gradient;
pub use builder::{Matching, TraceBuilder};
pub use correct::{ControlledLogicalClock, Corrected, Cycle};
pub use error::TraceError;
pub use forward::Pass;
pub use kind::{Action, CollectiveKind, Pattern};
pub use knots::{Knot, KnotError, Knots, Window};
pub use latencies::Latencies;
pub use trace::{Collective, CommunicatorId, EventId, LeftOut, Location, LocationId, Member, Message, Place, Trace};
