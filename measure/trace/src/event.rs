//! Events of a trace.

use super::CollectiveKind;
use super::encoding::{Encoded, encoded_enum};
use super::named::named;

encoded_enum! { 'a:
    /// Event of a location.
    ///
    /// Locations, communicators, regions and metrics are counted from 0, in the order in
    /// which they were defined. Communicators are groups of locations: MPI communicators
    /// and teams of threads.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Event<'a> {
        /// A region is entered.
        Enter {
            /// Number of the region.
            region: u32,
        } = 1,
        /// A region is left.
        Leave {
            /// Number of the region.
            region: u32,
        } = 2,
        /// Text without a meaning for other locations, which is preserved.
        Note(text: &'a str) = 3,
        /// Event without a meaning for other locations that only its archive has; its
        /// kind there.
        Opaque(name: &'a str) = 4,
        /// Value of a metric. Text traces have no metrics.
        Metric {
            /// Number of the metric.
            metric: u32,
            /// The value.
            value: Quantity,
        } = 5,
        /// A message is sent.
        Send {
            /// Receiver.
            to: u32,
            /// Communicator of the message.
            communicator: u32,
            /// Tag of the message.
            tag: i32,
            /// Id that the completion has, if the send only starts here.
            request: Option<u64>,
            /// Length of the message in bytes, if it is known.
            bytes: Option<u64>,
        } = 6,
        /// A send is found complete.
        CompleteSend {
            /// Id that the send has.
            request: u64,
        } = 7,
        /// A message is received, or a posted receive is found complete. Waits for the
        /// send. Without a post in the trace, it counts as posted here.
        Receive {
            /// Sender.
            from: u32,
            /// Communicator of the message.
            communicator: u32,
            /// Tag of the message.
            tag: i32,
            /// Id that the post has; none for an operation that waits for the message.
            request: Option<u64>,
            /// Length of the message in bytes, if it is known.
            bytes: Option<u64>,
        } = 8,
        /// A receive is posted (`MPI_Irecv`, the start of a persistent receive). Messages
        /// of a channel are matched in the order in which their receives were posted, not
        /// in that of completions.
        PostReceive {
            /// Id that the completion has. A process can use it for another request after
            /// the completion.
            request: u64,
        } = 9,
        /// A posted receive ends without a message.
        CancelReceive {
            /// Id that the post has.
            request: u64,
        } = 10,
        /// A collective operation is entered or started. `MPI_Init` and `MPI_Finalize`
        /// count as barriers of all ranks. Blocking and non-blocking operations of a
        /// communicator are in one order.
        CollectiveBegin {
            /// Communicator of the operation.
            communicator: u32,
            /// Id that the completion has, if the operation does not block. A member can
            /// use it for another operation after the completion.
            request: Option<u64>,
        } = 11,
        /// A collective operation is left or found complete. Without a request, it is the
        /// first one that this location entered in the communicator and has not left,
        /// apart from those with requests, whose completions can have any order.
        CollectiveEnd {
            /// Communicator of the operation.
            communicator: u32,
            /// Kind of operation; neither a fork nor a join.
            kind: CollectiveKind,
            /// Rank of the root in the communicator; ignored if the operation has none.
            root: u32,
            /// True if this member contributed data.
            sent: bool,
            /// True if this member received data.
            received: bool,
            /// Id that the begin has, if the operation does not block.
            request: Option<u64>,
            /// Number of bytes that this member contributed, if it is known.
            bytes: Option<u64>,
        } = 12,
        /// A one-sided access to the memory of another location is issued. It is no
        /// message: the target need not take part.
        Access {
            /// Kind of access.
            kind: AccessKind,
            /// Location whose memory is accessed.
            target: u32,
            /// Communicator of the window.
            communicator: u32,
            /// Id that the completion has.
            request: u64,
            /// Number of bytes that are accessed at the target, if it is known.
            bytes: Option<u64>,
        } = 13,
        /// A one-sided access is known to be complete at its origin.
        AccessComplete {
            /// Communicator of the window.
            communicator: u32,
            /// Id that the access has.
            request: u64,
        } = 14,
        /// Something that one event of the process waits for: a thread is created or
        /// ends, a lock is released, work is given to a device. Counts as a message inside
        /// the process.
        Signal {
            /// Id that the wait has. A process can use it again after the wait.
            id: u64,
        } = 15,
        /// The end of a wait for a signal of the process: a thread begins or is joined,
        /// the lock is acquired, the work is begun. Without a signal in the trace, it
        /// waits for nothing.
        Wait {
            /// Id that the signal has.
            id: u64,
        } = 16,
        /// Threads are started, always by the same member of the team.
        Fork {
            /// Team of the new threads and of the one that starts them.
            team: u32,
        } = 17,
        /// A thread begins, which waited for the fork of its team.
        ThreadBegin {
            /// Team of the thread.
            team: u32,
        } = 18,
        /// A thread ends; the join of its team waits for it.
        ThreadEnd {
            /// Team of the thread.
            team: u32,
        } = 19,
        /// All threads have ended; an event of the thread that started them.
        Join {
            /// Team of the threads and of the one that started them.
            team: u32,
        } = 20,
    }
}

impl Event<'_> {
    /// Returns the name of the kind, as text traces have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Enter { .. } => "enter",
            Self::Leave { .. } => "leave",
            Self::Note(_) => "note",
            Self::Opaque(_) => "opaque",
            Self::Metric { .. } => "metric",
            Self::Send { request: None, .. } => "send",
            Self::Send { .. } => "send-start",
            Self::CompleteSend { .. } => "send-complete",
            Self::Receive { request: None, .. } => "receive",
            Self::Receive { .. } => "receive-complete",
            Self::PostReceive { .. } => "receive-post",
            Self::CancelReceive { .. } => "receive-cancel",
            Self::CollectiveBegin { request: None, .. } => "collective",
            Self::CollectiveBegin { .. } => "collective-start",
            Self::CollectiveEnd { request: None, .. } => "collective-end",
            Self::CollectiveEnd { .. } => "collective-complete",
            Self::Access { kind, .. } => kind.name(),
            Self::AccessComplete { .. } => "access-complete",
            Self::Signal { .. } => "signal",
            Self::Wait { .. } => "wait",
            Self::Fork { .. } => "fork",
            Self::ThreadBegin { .. } => "thread-begin",
            Self::ThreadEnd { .. } => "thread-end",
            Self::Join { .. } => "join",
        }
    }

    /// Returns the field for the number of bytes, if the event has one.
    const fn bytes_field(&self) -> Option<Option<u64>> {
        match *self {
            Self::Send { bytes, .. }
            | Self::Receive { bytes, .. }
            | Self::CollectiveEnd { bytes, .. }
            | Self::Access { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Returns true if the event can have a number of bytes.
    pub(crate) const fn has_bytes(&self) -> bool {
        self.bytes_field().is_some()
    }

    /// Returns the number of bytes of a message or an access, or that a member contributed
    /// to a collective operation, if it is known.
    pub const fn bytes(&self) -> Option<u64> {
        self.bytes_field().flatten()
    }

    /// Returns the id that the event has in common with another one: that of a request, of
    /// an access, or of a signal.
    pub const fn id(&self) -> Option<u64> {
        match *self {
            Self::Send { request, .. }
            | Self::Receive { request, .. }
            | Self::CollectiveBegin { request, .. }
            | Self::CollectiveEnd { request, .. } => request,
            Self::CompleteSend { request: id }
            | Self::PostReceive { request: id }
            | Self::CancelReceive { request: id }
            | Self::Access { request: id, .. }
            | Self::AccessComplete { request: id, .. }
            | Self::Signal { id }
            | Self::Wait { id } => Some(id),
            _ => None,
        }
    }

    /// Returns the location at the other end of a message or access.
    pub const fn peer(&self) -> Option<u32> {
        match *self {
            Self::Send { to: peer, .. }
            | Self::Receive { from: peer, .. }
            | Self::Access { target: peer, .. } => Some(peer),
            _ => None,
        }
    }

    /// Returns the tag of a message.
    pub const fn tag(&self) -> Option<i32> {
        match *self {
            Self::Send { tag, .. } | Self::Receive { tag, .. } => Some(tag),
            _ => None,
        }
    }

    /// Returns the communicator or team that the event refers to.
    pub const fn communicator(&self) -> Option<u32> {
        match *self {
            Self::Send { communicator, .. }
            | Self::Receive { communicator, .. }
            | Self::CollectiveBegin { communicator, .. }
            | Self::CollectiveEnd { communicator, .. }
            | Self::Access { communicator, .. }
            | Self::AccessComplete { communicator, .. }
            | Self::Fork { team: communicator }
            | Self::ThreadBegin { team: communicator }
            | Self::ThreadEnd { team: communicator }
            | Self::Join { team: communicator } => Some(communicator),
            _ => None,
        }
    }
}

/// Value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Whole number.
    Whole(i64),
    /// Any other number.
    Real(f64),
}

impl Quantity {
    /// Returns the nearest floating-point number.
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Real(value) => value,
        }
    }
}

named! {
    /// Kind of a one-sided access (RMA).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AccessKind {
        /// Data are written at the target.
        Put = "put",
        /// Data are read at the target.
        Get = "get",
        /// Data of the target are combined with those of the origin, or compared and
        /// exchanged.
        Atomic = "atomic",
    }

    /// Returns the name in text traces.
    fn name
}

impl<'a> Encoded<'a> for Quantity {
    fn encode(&self, to: &mut Vec<u8>) {
        let (is_real, bits) = match *self {
            Self::Whole(value) => (false, value as u64),
            Self::Real(value) => (true, value.to_bits()),
        };
        (is_real, bits).encode(to);
    }

    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        let (is_real, bits): (bool, u64) = Encoded::decode(from)?;
        Some(match is_real {
            true => Self::Real(f64::from_bits(bits)),
            false => Self::Whole(bits as i64),
        })
    }
}
