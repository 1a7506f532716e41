//! Correction of a trace that is not in memory, by passes over its events.
//!
//! 1. A [`Survey`] takes the events of each location in their order, finds inconsistencies, and returns
//!    each event with its link to others. The caller keeps these by location.
//! 2. A [`CausalOrder`] puts them in an order in which each event follows those that it waits for,
//!    and the events of each clock are in theirs. The caller keeps this sequence; all further passes
//!    are over it. [`StreamedLatencies`] are needed if latencies are measured, and [`StreamedHulls`]
//!    if clocks are known by messages.
//! 3. A [`StreamedForward`] makes a [`Record`] of each event. The caller keeps its times on a stack.
//! 4. A [`StreamedBackward`] takes the records from the last to the first, and hands out times as
//!    soon as they are final: those of each location from its last event to its first.
//! 5. The final times are used, for example by a [`StreamedVerdict`](super::check::StreamedVerdict).
//!
//! Only messages under way, unfinished collective operations, and events that backward amortization
//! may still move are in memory. The result is that of
//! [`ControlledLogicalClock::correct`](super::ControlledLogicalClock::correct), bit for bit.

mod backward;
mod census;
mod clock_merge;
mod codec;
mod forward;
mod gate;
mod hulls;
mod latencies;
mod link;
mod messages;
mod order;
mod posted;
mod record;
mod stays;
mod survey;
mod under_way;

pub use backward::StreamedBackward;
pub use census::{Census, StreamError};
pub use codec::EventCodec;
pub use forward::StreamedForward;
pub use hulls::StreamedHulls;
pub use latencies::StreamedLatencies;
pub use link::{Linked, SurveyedEvent};
pub use order::CausalOrder;
pub use record::Record;
pub use survey::Survey;

pub(super) use census::{StreamedOperation, Which};
pub(super) use link::Link;
pub(super) use posted::{Overtaking, Posted};
pub(super) use under_way::UnderWay;
