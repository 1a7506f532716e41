//! Identifiers and places of locations, communicators and events.

use super::encoding::{encode_as, encoded};

/// Identifier of a location: a thread of a process. Locations are numbered from 0 in the order in
/// which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationId(pub(crate) u32);

/// Identifier of a communicator, or of a team of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunicatorId(pub(crate) u32);

impl LocationId {
    /// Returns the index of the location in [`Trace::locations`](crate::Trace::locations).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl CommunicatorId {
    /// Returns the index of the communicator, in the order in which communicators were added.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<LocationId> for u32 {
    /// Returns the number of the location in an [`Event`](crate::Event).
    fn from(LocationId(number): LocationId) -> Self {
        number
    }
}

impl From<CommunicatorId> for u32 {
    /// Returns the number of the communicator in an [`Event`](crate::Event).
    fn from(CommunicatorId(number): CommunicatorId) -> Self {
        number
    }
}

/// Place of a location, which determines the minimum latency of messages to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the node.
    pub node: u32,
    /// Number of the process, unique across nodes.
    pub process: u32,
}

/// An event of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Location of the event.
    pub location: LocationId,
    /// Index of the event on its location.
    pub event: u32,
}

encoded! { EventId { location, event } }

encode_as! { LocationId as u32: u32::from, |number| Some(Self(number)); }

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {} of location {}", self.event, self.location.0)
    }
}
