//! Correcting the times of a trace after the fact.
//!
//! A [`TraceBuilder`] takes the events of all locations, and matches messages and collective operations; the
//! [`ControlledLogicalClock`] moves events of the [`Trace`] so that none of them depends on a later one. A [`Verdict`]
//! looks for what is wrong with times, and a [`Deviation`] says what became of them.
//!
//! The times that are corrected are those of clocks that were synchronized before, as well as that can be done from
//! outside: by a [`PreSynchronization`].
//!
//! A trace that is too large for one rank is shared by several: each has a [`TracePart`], made by a [`PartBuilder`].
//!
//! # Laws
//! Of what is corrected, whatever the settings and the number of threads:
//! - No message and no collective operation violates its latency.
//! - Forward amortization moves no event back from where it was measured, and backward amortization none from where
//!   forward amortization left it.
//! - On a location, times do not decrease, and increase where they did before, if the spacing is at least 1 ns.
//! - The result depends on nothing but the trace, its latencies and the settings: not on the number of threads or ranks.
//!
//! # Cost
//! An event takes 8 bytes in the trace and 8 corrected, and if it has to do with others 20 more; every member of a
//! collective operation takes 12 beside that. The time is proportional to the events, and to those in intervals that
//! are stretched: where clocks lose a larger share of their speed than the gradient, jumps overlap, and events are moved
//! as often.
//!
//! # Caveats
//! - Everything is shifted towards the fastest clock: a correction knows what cannot have been, not what was.
//! - A collective operation is left by the thread that entered it.
//! - Where many threads of a rank send or receive with one tag in one communicator, their messages are told apart by
//!   the order in which they were added.
//! - Ranks that share a trace do not split processes, and each of them is shown all events.
//! - Threads do not help much where all messages are waited for: replaying such a trace is as serial as the program was.

mod backward;
mod builder;
mod channels;
mod check;
mod correct;
mod cycle;
mod definitions;
mod deviation;
mod distributed;
mod error;
mod events;
mod extremes;
pub mod formats;
mod forward;
mod gates;
mod generate;
mod ids;
mod kind;
mod knots;
mod latencies;
mod leeway;
mod limits;
mod logical;
mod matching;
mod presync;
mod primitives;
#[cfg(loom)]
mod replaying;
mod stamps;
mod streaming;
mod teams;
mod trace;
mod workers;

pub use backward::Gradient;
pub use builder::TraceBuilder;
pub use check::{Difference, Fault, Misfit, Relations, Reversal, StreamedVerdict, Verdict};
pub use correct::{ControlledLogicalClock, Corrected};
pub use cycle::Cycle;
pub use deviation::{
    Above, Bins, Deviation, Displacement, Intervals, StreamedDeviation, TruthComparison,
};
pub use distributed::{CorrectedPart, PartBuilder, PartError, Shares, Totals, TracePart};
pub use error::TraceError;
pub use forward::Pass;
pub use generate::{SyntheticEvent, SyntheticProgram, SyntheticTraffic};
pub use ids::{CommunicatorId, EventId, LocationId, Place};
pub use kind::{Action, CollectiveKind, Pattern};
pub use knots::{Knots, OffsetKnot, TimeWindow};
pub use latencies::Latencies;
pub use logical::{ClockRule, ControlVariable, LogicalClock};
pub use matching::Matching;
pub use presync::{
    ClockMap, ClockMaps, ClockOffsetError, ClockOwner, ClockSample, Interpolation,
    PreSynchronization, StreamedMaps,
};
#[cfg(loom)]
pub use replaying::Replaying;
pub use streaming::{
    Census, Linked, Matcher, Record, StreamError, StreamedBackward, StreamedForward,
    StreamedLatencies, Survey,
};
pub use trace::{Collective, LeftOut, Location, Member, Message, Trace};
