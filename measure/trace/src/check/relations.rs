//! Counts of dependences between events, and single violations.

use core::fmt;

use downbeat_clock_core::Duration;

use crate::encoding::encoded_enum;
use crate::{CollectiveKind, EventId};

/// Numbers of dependences between events, and of violated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct RelationCounts {
    /// All dependences.
    pub total: u64,
    /// Dependences in which the receiving event is before the sending one.
    pub reversed: u64,
    /// Dependences in which the receiving event is earlier than the sending one plus the latency,
    /// including the reversed ones.
    pub violated: u64,
}

/// Dependences between locations of one clock. They are as the clock has recorded them, and no
/// violations: a clock cannot be corrected with itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct WithinClocks {
    /// All dependences.
    pub total: u64,
    /// Dependences in which the receiving event is before the sending one.
    pub reversed: u64,
}

encoded_enum! { 'a:
    /// Violation in the times of a trace.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Violation {
        /// The event is before the one before it.
        Decreasing(event: EventId) = 0,
        /// The event was after the one before it, and is now at the same time.
        Merged(event: EventId) = 1,
        /// The event is before one of another location of its clock that came before it.
        Reordered(event: EventId) = 2,
        /// An event comes too early after one that it depends on.
        Early {
            /// Send of the message, or the enter that an exit depends on.
            send: EventId,
            /// Receive, or exit.
            receive: EventId,
            /// Minimum amount by which it should be later.
            by: Duration,
            /// Kind of the collective operation; `None` for a message.
            kind: Option<CollectiveKind>,
        } = 3,
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|event| event.to_string()))
    }
}

impl Violation {
    /// Returns the event that is too early.
    pub(super) fn event(&self) -> EventId {
        match *self {
            Self::Decreasing(event) | Self::Merged(event) | Self::Reordered(event) => event,
            Self::Early { receive, .. } => receive,
        }
    }

    /// Describes the violation like [`Display`](fmt::Display), with a custom description of events,
    /// such as the names of locations.
    pub fn describe(&self, event_name: impl Fn(EventId) -> String) -> String {
        let event = event_name(self.event());
        match self {
            Self::Decreasing(_) => format!("{event} is earlier than the event before it"),
            Self::Merged(_) => format!("{event} is no longer later than the event before it"),
            Self::Reordered(_) => format!(
                "{event} is earlier than the event before it on its clock, of another location"
            ),
            Self::Early { send, by, kind, .. } => {
                let what = kind.map_or_else(|| "a message".to_owned(), |kind| format!("{kind:?}"));
                let send = event_name(*send);
                format!("{event} is {by} too early for {send}, {what}")
            }
        }
    }
}
