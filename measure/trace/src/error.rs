//! Errors of traces.

use thiserror::Error;

use super::NoRoom;
use super::ids::{CommunicatorId, EventId, LocationId};

/// Reason why events do not form a [`Trace`](super::Trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The events need more room than there is.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// There are 2^29 locations or more.
    #[error("there are 2^29 locations or more")]
    TooManyLocations,
    /// There are more than 2^32 - 1 communicators, or collective operations.
    #[error("there are more than 2^32 communicators or collective operations")]
    TooManyCollectives,
    /// A location has more than 2^32 - 1 events.
    #[error("location {} has more than 2^32 events", .0.index())]
    TooManyEvents(LocationId),
    /// The location does not exist.
    #[error("location {} does not exist", .0.index())]
    UnknownLocation(LocationId),
    /// The event names a location that does not exist.
    #[error("{0} names a location that does not exist")]
    UnknownPeer(EventId),
    /// The communicator does not exist, or the location is not one of its members.
    #[error("{event} is in communicator {}, of which the location is not a member", communicator.0)]
    NotAMember {
        /// Event of the location.
        event: EventId,
        /// Communicator of the event.
        communicator: CommunicatorId,
    },
    /// A location is a member of a communicator twice.
    #[error("location {} is in one communicator twice", .0.index())]
    MemberTwice(LocationId),
    /// The event is before the one before it.
    #[error("{0} is earlier than the event before it")]
    Decreasing(EventId),
    /// The time of the event is more than 146 years from the origin.
    #[error("{0} is more than 146 years from the origin")]
    TooFar(EventId),
    /// Members do not agree on which collective operation this is.
    #[error("{event} and {other} leave one collective operation, but give different kinds")]
    OtherKind {
        /// Exit of one member.
        event: EventId,
        /// Exit of another member.
        other: EventId,
    },
    /// Members do not agree on the root of a collective operation, or it is not a rank of the
    /// communicator.
    #[error("{event} {}", match event == other {
        true => "names a root that is not a rank of its communicator".to_owned(),
        false => format!("and {other} leave one collective operation, but name different roots"),
    })]
    OtherRoot {
        /// Exit of one member.
        event: EventId,
        /// Exit of another member; the same event if the root is not a rank.
        other: EventId,
    },
    /// A collective operation is left that was not entered, or a join or a thread's end came twice.
    #[error("{0} leaves a collective operation that was not entered")]
    NotEntered(EventId),
}
