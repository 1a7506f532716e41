//! Correction of a trace that is not in memory: one forward pass and one backward pass over a
//! stream.
//!
//! The stream must have each event after those that it waits for, regardless of times: sends before
//! their receives, enters before exits that wait for them. Then only messages under way, unfinished
//! collective operations, and events that backward amortization may still move are in memory. The
//! result is that of [`ControlledLogicalClock::correct`](super::ControlledLogicalClock::correct),
//! bit for bit.
//!
//! The events are read several times, in the same order:
//! 1. A [`Survey`] finds inconsistencies, and collects what must be known in advance: the
//!    [`Census`].
//! 2. A [`Matcher`] links every event to its message or collective operation; [`StreamedLatencies`]
//!    need that, if latencies are measured, and [`StreamedHulls`], if clocks are known by messages.
//! 3. A [`StreamedForward`] makes a [`Record`] of each event. The caller keeps these as integers on
//!    a stack.
//! 4. A [`StreamedBackward`] takes the records from the top of the stack, and hands out times as
//!    soon as they are final.
//! 5. The final times are used, for example by a [`StreamedVerdict`](super::StreamedVerdict).

mod backward;
mod census;
mod forward;
mod gate;
mod hulls;
mod latencies;
mod matcher;
mod posted;
mod record;
mod stays;
mod survey;

pub use backward::StreamedBackward;
pub use census::{Census, StreamError};
pub use forward::StreamedForward;
pub use hulls::StreamedHulls;
pub use latencies::StreamedLatencies;
pub use matcher::{Linked, Matcher};
pub use record::Record;
pub use survey::Survey;

pub(super) use census::StreamedOperation;
pub(super) use matcher::Link;
pub(super) use posted::{Overtaking, Posted};
