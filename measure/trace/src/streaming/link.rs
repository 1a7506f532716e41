//! Events of a stream with their links to others.

use downbeat_clock_core::{Global, Timestamp};

use super::super::{CollectiveKind, EventId};
use super::StreamedOperation;

/// Event of a stream, with its link to other events.
#[derive(Clone, Copy, Debug)]
pub struct Linked {
    /// Id of the event.
    pub id: EventId,
    pub(crate) link: Link,
}

impl Linked {
    /// Returns true if the event enters a collective operation.
    pub(crate) const fn is_enter(&self) -> bool {
        matches!(self.link, Link::Enter { .. })
    }
}

/// Event of a location with its link, after the first pass over a stream.
///
/// The link of a receive that did not complete in the order of the posts is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct SurveyedEvent {
    pub(super) id: EventId,
    pub(super) time: Timestamp<Global>,
    /// Position in the whole trace.
    pub(super) position: u64,
    pub(super) link: Link,
}

/// Link of an event to others. Messages have numbers in the whole trace after the first pass over a stream,
/// and among those under way after the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Nothing,
    Send {
        message: u64,
    },
    Receive {
        message: u64,
    },
    /// Receive that comes before its send, on the same clock.
    EarlyReceive {
        message: u64,
    },
    /// Send of such a message.
    LateSend {
        message: u64,
    },
    Enter {
        of: StreamedOperation,
    },
    Exit {
        of: StreamedOperation,
        kind: CollectiveKind,
        root: u32,
        sends: bool,
        receives: bool,
    },
}
