//! Errors of clock offsets.

use core::fmt;

use crate::LocationId;

/// Reason why measured clock offsets do not give one clock, or why no clock offsets give the wanted times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockOffsetError {
    /// The master is not one of the locations.
    NoMaster(LocationId),
    /// One clock gained more than 1 % on the other by the line through all samples.
    Jump(LocationId),
    /// The clocks are more than 146 years apart.
    TooFar(LocationId),
    /// The method needs messages, not sessions.
    NeedsMessages,
    /// The event with this index was recorded before its predecessor, or a knot is not after its predecessor.
    Decreasing(usize),
    /// Events that were recorded at one time would have to be moved apart or to change places, but an offset moves
    /// them by the same amount. For a single event: its window is empty, or lies before those of earlier events.
    Inseparable {
        /// Index of the first of these events.
        first: usize,
        /// Index of the last of these events.
        last: usize,
    },
    /// The offset of the event with this index differs from others by 2^45 or more, or its time by 2^63: a reader could
    /// not interpolate it precisely.
    Unreachable(usize),
    /// More knots than allowed are needed up to the event with this index.
    TooMany(usize),
}

impl fmt::Display for ClockOffsetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMaster(location) => {
                write!(
                    f,
                    "the master, location {}, does not exist",
                    location.index()
                )
            }
            Self::NeedsMessages => {
                f.write_str("convex hulls are those of messages, not of sessions")
            }
            Self::Jump(location) => write!(
                f,
                "the samples of the clock of location {} contradict each other",
                location.index()
            ),
            Self::TooFar(location) => write!(
                f,
                "the clock of location {} is more than 146 years from the master's",
                location.index()
            ),
            Self::Decreasing(event) => {
                write!(f, "event {event} was recorded before the one before it")
            }
            Self::Inseparable { first, last } if first == last => write!(
                f,
                "event {first} cannot be moved to any time, or only back past another event"
            ),
            Self::Inseparable { first, last } => write!(
                f,
                "events {first} to {last} must be moved apart, which no clock offset does"
            ),
            Self::Unreachable(event) => write!(
                f,
                "event {event} would have to be moved by 10 hours more than others"
            ),
            Self::TooMany(event) => write!(
                f,
                "too many clock offsets would be needed up to event {event}"
            ),
        }
    }
}

impl core::error::Error for ClockOffsetError {}
