//! Selection of a part of a trace.

use downbeat_clock_core::{Duration, Global, Timestamp};

/// Part of a trace that a [`TraceView`](super::TraceView) shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewSelection {
    /// Events from one time to another one; without them from the first or to the last event.
    Between([Option<ViewTime>; 2]),
    /// Time around one call on every location.
    Call {
        /// Name of the region.
        name: String,
        /// Number of the call among those of the location, counted from 1.
        number: u64,
    },
    /// First and last event of every location that is shown, by their indices.
    Events(Vec<Option<[u64; 2]>>),
}

/// Time in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewTime {
    /// Timestamp.
    At(Timestamp<Global>),
    /// Time since the first event in the file.
    SinceFirst(Duration),
}

impl ViewTime {
    /// Returns the timestamp, given that of the first event.
    pub fn resolved(self, first: Timestamp<Global>) -> Timestamp<Global> {
        match self {
            Self::At(time) => time,
            Self::SinceFirst(elapsed) => first + elapsed,
        }
    }
}
