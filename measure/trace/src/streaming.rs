//! Correcting a trace that is not in memory: in one stream forward, and in one back.
//!
//! This needs the events in an order in which each comes after those that it waits for, whatever their times: sends before
//! their receives, enters before exits that wait for them. Then nothing is held but messages under way, collective
//! operations that are not over, and what backward amortization may still move. The result is that of
//! [`ControlledLogicalClock::correct`](super::ControlledLogicalClock::correct), to the bit.
//!
//! The events are needed several times, in the same order:
//! 1. A [`Survey`] finds out what does not go together, and what must be known in advance: the [`Census`].
//! 2. A [`Matcher`] says of every event what others have to do with it; [`StreamedLatencies`] need that, if they are
//!    measured.
//! 3. A [`StreamedForward`] makes a [`Record`] of each. These are kept outside, as words in a stack.
//! 4. A [`StreamedBackward`] takes them from its top and hands out final times, in whatever order they become so.
//! 5. Whatever is done with these times: a [`StreamedVerdict`](super::StreamedVerdict), for one.

mod backward;
mod census;
mod forward;
mod gate;
mod latencies;
mod matcher;
mod record;
mod survey;

pub use backward::StreamedBackward;
pub use census::{Census, StreamError};
pub use forward::StreamedForward;
pub use latencies::StreamedLatencies;
pub use matcher::{Linked, Matcher};
pub use record::Record;
pub use survey::Survey;

pub(super) use census::Operation;
pub(super) use matcher::Link;
