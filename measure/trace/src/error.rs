//! What can be wrong with a trace.

use core::fmt;

use super::{CommunicatorId, EventId, LocationId};

/// Why events are no [`Trace`](super::Trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// There are 2^29 locations or more.
    TooManyLocations,
    /// There are more than 2^32 - 1 communicators, or collective operations.
    TooManyCollectives,
    /// A location has more than 2^32 - 1 events.
    TooManyEvents(LocationId),
    /// There is no such location.
    UnknownLocation(LocationId),
    /// The event names a location that there is not.
    UnknownPeer(EventId),
    /// There is no such communicator, or the location is none of its members.
    NotAMember {
        /// What the location did there.
        event: EventId,
        /// Which.
        communicator: CommunicatorId,
    },
    /// A location is a member of a communicator twice.
    MemberTwice(LocationId),
    /// The event is before the one before it.
    Decreasing(EventId),
    /// The time of the event is more than 146 years from the origin.
    TooFar(EventId),
    /// Nobody receives the message.
    UnmatchedSend(EventId),
    /// Nobody sent the message.
    UnmatchedReceive(EventId),
    /// Members do not agree on which collective operation this is.
    OtherKind {
        /// The exit of one.
        event: EventId,
        /// The exit of another.
        other: EventId,
    },
    /// Members do not agree on the root of a collective operation, or it is no rank of the communicator.
    OtherRoot {
        /// The exit of one.
        event: EventId,
        /// The exit of another; the same event if the root is no rank.
        other: EventId,
    },
    /// A collective operation is left that was not entered, or a join or a thread's end came twice.
    NotEntered(EventId),
    /// A collective operation is never left.
    NotLeft(EventId),
    /// A member left a collective operation that another one never entered.
    Absent {
        /// The exit, or else the only event, of one that did take part.
        event: EventId,
        /// Who did not.
        absent: LocationId,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyLocations => f.write_str("there are 2^29 locations or more"),
            Self::TooManyCollectives => {
                f.write_str("there are more than 2^32 communicators or collective operations")
            }
            Self::TooManyEvents(location) => {
                write!(f, "location {} has more than 2^32 events", location.index())
            }
            Self::UnknownLocation(location) => {
                write!(f, "there is no location {}", location.index())
            }
            Self::UnknownPeer(event) => write!(f, "{event} names a location that there is not"),
            Self::NotAMember {
                event,
                communicator,
            } => {
                write!(
                    f,
                    "{event} is in communicator {}, of which the location is no member",
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
            Self::UnmatchedSend(event) => write!(f, "{event} sends a message that nobody receives"),
            Self::UnmatchedReceive(event) => {
                write!(f, "{event} receives a message that nobody sent")
            }
            Self::OtherKind { event, other } => {
                write!(
                    f,
                    "{event} and {other} leave one collective operation, but say it was of different kinds"
                )
            }
            Self::OtherRoot { event, other } if event == other => {
                write!(
                    f,
                    "{event} names a root that is no rank of its communicator"
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
            Self::NotLeft(event) => write!(
                f,
                "{event} enters a collective operation that is never left"
            ),
            Self::Absent { event, absent } => {
                write!(
                    f,
                    "{event} is in a collective operation that location {} is missing in",
                    absent.index()
                )
            }
        }
    }
}

impl core::error::Error for TraceError {}
