//! Errors of traces.

use core::fmt;

use super::NoRoom;
use super::ids::{CommunicatorId, EventId, LocationId};

/// Reason why events do not form a [`Trace`](super::Trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// The events need more room than there is.
    NoRoom(NoRoom),
    /// There are 2^29 locations or more.
    TooManyLocations,
    /// There are more than 2^32 - 1 communicators, or collective operations.
    TooManyCollectives,
    /// A location has more than 2^32 - 1 events.
    TooManyEvents(LocationId),
    /// The location does not exist.
    UnknownLocation(LocationId),
    /// The event names a location that does not exist.
    UnknownPeer(EventId),
    /// The communicator does not exist, or the location is not one of its members.
    NotAMember {
        /// Event of the location.
        event: EventId,
        /// Communicator of the event.
        communicator: CommunicatorId,
    },
    /// A location is a member of a communicator twice.
    MemberTwice(LocationId),
    /// The event is before the one before it.
    Decreasing(EventId),
    /// The time of the event is more than 146 years from the origin.
    TooFar(EventId),
    /// Members do not agree on which collective operation this is.
    OtherKind {
        /// Exit of one member.
        event: EventId,
        /// Exit of another member.
        other: EventId,
    },
    /// Members do not agree on the root of a collective operation, or it is not a rank of the
    /// communicator.
    OtherRoot {
        /// Exit of one member.
        event: EventId,
        /// Exit of another member; the same event if the root is not a rank.
        other: EventId,
    },
    /// A collective operation is left that was not entered, or a join or a thread's end came twice.
    NotEntered(EventId),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom(why) => why.fmt(f),
            Self::TooManyLocations => f.write_str("there are 2^29 locations or more"),
            Self::TooManyCollectives => {
                f.write_str("there are more than 2^32 communicators or collective operations")
            }
            Self::TooManyEvents(location) => {
                write!(f, "location {} has more than 2^32 events", location.index())
            }
            Self::UnknownLocation(location) => {
                write!(f, "location {} does not exist", location.index())
            }
            Self::UnknownPeer(event) => write!(f, "{event} names a location that does not exist"),
            Self::NotAMember {
                event,
                communicator,
            } => {
                write!(
                    f,
                    "{event} is in communicator {}, of which the location is not a member",
                    communicator.0
                )
            }
            Self::MemberTwice(location) => {
                write!(
                    f,
                    "location {} is in one communicator twice",
                    location.index()
                )
            }
            Self::Decreasing(event) => write!(f, "{event} is earlier than the event before it"),
            Self::TooFar(event) => write!(f, "{event} is more than 146 years from the origin"),
            Self::OtherKind { event, other } => {
                write!(
                    f,
                    "{event} and {other} leave one collective operation, but give different kinds"
                )
            }
            Self::OtherRoot { event, other } if event == other => {
                write!(
                    f,
                    "{event} names a root that is not a rank of its communicator"
                )
            }
            Self::OtherRoot { event, other } => {
                write!(
                    f,
                    "{event} and {other} leave one collective operation, but name different roots"
                )
            }
            Self::NotEntered(event) => write!(
                f,
                "{event} leaves a collective operation that was not entered"
            ),
        }
    }
}

impl core::error::Error for TraceError {}

impl From<NoRoom> for TraceError {
    fn from(why: NoRoom) -> Self {
        Self::NoRoom(why)
    }
}
