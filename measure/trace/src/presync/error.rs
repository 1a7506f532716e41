//! Errors of clock offsets.

use thiserror::Error;

use crate::LocationId;

/// Reason why measured clock offsets do not give one clock, or why no clock offsets give the wanted times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClockOffsetError {
    /// The master is not one of the locations.
    #[error("the master, location {}, does not exist", .0.index())]
    NoMaster(LocationId),
    /// One clock gained more than 1 % on the other by the line through all samples.
    #[error("the samples of the clock of location {} contradict each other", .0.index())]
    Jump(LocationId),
    /// The clocks are more than 146 years apart.
    #[error("the clock of location {} is more than 146 years from the master's", .0.index())]
    TooFar(LocationId),
    /// The method needs messages, not sessions.
    #[error("convex hulls are those of messages, not of sessions")]
    NeedsMessages,
    /// The event with this index was recorded before its predecessor, or a knot is not after its predecessor.
    #[error("event {0} was recorded before the one before it")]
    Decreasing(usize),
    /// Events that were recorded at one time would have to be moved apart or to change places, but an offset moves
    /// them by the same amount. For a single event: its window is empty, or lies before those of earlier events.
    #[error("{}", match first == last {
        true => format!("event {first} cannot be moved to any time, or only back past another event"),
        false => format!("events {first} to {last} must be moved apart, which no clock offset does"),
    })]
    Inseparable {
        /// Index of the first of these events.
        first: usize,
        /// Index of the last of these events.
        last: usize,
    },
    /// The offset of the event with this index differs from others by 2^45 or more, or its time by 2^63: a reader could
    /// not interpolate it precisely.
    #[error("event {0} would have to be moved by 10 hours more than others")]
    Unreachable(usize),
    /// More knots than allowed are needed up to the event with this index.
    #[error("too many clock offsets would be needed up to event {0}")]
    TooMany(usize),
}
