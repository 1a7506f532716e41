#![doc = include_str!("../README.md")]
//!
//! # Contents
//! A [`TraceBuilder`] takes the [`Event`]s of all locations and matches messages and collective
//! operations. The [`ControlledLogicalClock`] moves events of the [`Trace`] so that no event
//! precedes one that it depends on. A [`Verdict`] lists the violations in a set of times, and a
//! [`Deviation`] compares times before and after.
//!
//! The clocks should be synchronized first, as well as offset measurements or the messages
//! themselves allow, by a [`PreSynchronization`].
//!
//! [`correct()`] does all of this: it takes a [`MeasuredTrace`] from its measured times through
//! pre-synchronization, the logical clock and the checks to a sink of your own, and returns a
//! [`CorrectionReport`], the report. [`formats`] reads and writes files.
//!
//! A [`CallWalk`] finds the calls, messages and collective operations of a trace in one pass, in bounded memory:
//! [`WaitStates`] sum up the time that ranks lose because they wait for others, and a [`TraceView`] collects what a
//! picture of a part of the trace shows.
//!
//! A trace that is too large for one rank is shared by several: each has a [`TracePart`],
//! made by [`TraceBuilder::finish_on_ranks`]. Every function takes the communicator of
//! the ranks then, and uses as many threads per rank as
//! [`ControlledLogicalClock::workers`] says.
//!
//! # Laws
//! For any settings and any number of threads, the corrected times obey these laws:
//! - No message and no collective operation violates its latency.
//! - Forward amortization moves no event before its measured time, and backward amortization moves
//!   no event before its time after forward amortization.
//! - On a location, times do not decrease, and increase where they did before, if the spacing is at
//!   least 1 ns.
//! - Events of a clock that several locations share keep their order: all move along one curve.
//! - The result depends only on the trace, its latencies and the settings, not on the number of
//!   threads or ranks.
//!
//! # Cost
//! An event takes 8 bytes in the trace and 8 bytes corrected, and 20 more if it depends on events
//! of other locations or they depend on it; every member of a collective operation takes 12 more.
//! Where locations share a clock, the order of their events takes up to 8 more, and 16 until it is
//! known, if the input alternates between them.
//! The time is proportional to the number of events, plus the number of events in stretched
//! intervals: where clocks are slowed down by more than the gradient, jumps overlap, and events are
//! moved once for each.
//!
//! # Caveats
//! - Messages and operations between locations of one clock stay as the clock recorded them, even if
//!   a receive is before its send: [`Matching::clock_of`] tells which locations share a clock.
//! - All times are shifted towards the fastest clock: a correction knows what is impossible, not
//!   what happened.
//! - A collective operation must be left by the thread that entered it.
//! - Where several threads of a rank send or receive with the same tag and communicator, their
//!   messages are matched in the order in which they were added.
//! - Ranks that share a trace do not split processes. Each rank reads only its own events; of a
//!   trace in the text format, every rank reads the whole file and keeps its own events.
//!   Collective operations are not divided: each rank keeps the members of all those in which
//!   its locations take part.
//! - Forward amortization runs on one thread: it is as serial as the program was. Reading, backward
//!   amortization and the checks use several.
//!
//! [`CallWalk`]: calls::CallWalk
//! [`Deviation`]: deviation::Deviation
//! [`PreSynchronization`]: presync::PreSynchronization
//! [`TracePart`]: ranks::TracePart
//! [`TraceView`]: view::TraceView
//! [`Verdict`]: check::Verdict
//! [`WaitStates`]: waits::WaitStates
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod backward;
mod builder;
mod call_kind;
pub mod calls;
mod channels;
pub mod check;
mod clock_order;
mod clocks;
mod correct;
mod correction;
mod correction_error;
mod cycle;
mod definitions;
pub mod deviation;
mod encoding;
mod error;
mod event;
mod events;
mod extremes;
pub mod formats;
mod forward;
mod gates;
pub mod generate;
mod ids;
mod kind;
pub mod knots;
mod latencies;
mod leeway;
mod limits;
pub mod logical;
mod matching;
mod member_times;
mod named;
mod pending_ends;
mod post_order;
mod posts;
pub mod presync;
pub mod ranks;
mod read_ahead;
mod resolution;
mod signals;
mod stamps;
mod teams;
mod timeline;
mod totals;
mod trace;
pub mod view;
pub mod waits;
mod workers;

pub use array::{Array, ArrayStore, NoRoom};
pub use backward::Gradient;
pub use builder::TraceBuilder;
pub use call_kind::CallKind;
pub use clocks::{ClockOwner, Clocks};
pub use correct::{ControlledLogicalClock, CorrectedTimes};
pub use correction::{
    CorrectedTrace, CorrectionReport, CorrectionSettings, MeasuredTrace, correct,
};
pub use correction_error::CorrectionError;
pub use cycle::Cycle;
#[doc(no_inline)]
pub use downbeat_clock_core::{Duration, Global, Timestamp};
pub use error::TraceError;
pub use event::{AccessKind, Event, Quantity};
pub use forward::ForwardPass;
pub use ids::{CommunicatorId, EventId, LocationId, Place};
pub use kind::{CollectiveKind, DependencePattern};
pub use latencies::Latencies;
pub use matching::Matching;
pub use resolution::Resolution;
pub use totals::Totals;
pub use trace::{Collective, Location, Member, Message, Trace, UnmatchedEvents};
