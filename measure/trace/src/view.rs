//! Views of a trace for pictures: bars of calls and arrows of messages in a chosen interval, found in one pass.
//!
//! Memory is bounded, whatever the trace is: as long as there are few, single calls are kept; the time of every region
//! in bins that double in width as the trace goes on always is.

mod bins;
mod ring;
mod selection;
mod trace_view;
mod viewed;

pub use selection::{ViewSelection, ViewTime};
pub use trace_view::{TraceView, ViewError};
pub use viewed::{ViewBar, ViewContent, ViewLimits, ViewMessage, ViewRow};

#[cfg(test)]
mod tests;
