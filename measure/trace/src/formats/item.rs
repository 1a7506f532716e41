//! Items of a trace file: definitions, samples and events.

use crate::{Action, CollectiveKind, CommunicatorId, Place};
use downbeat_clock_core::{Global, Local, Timestamp};

/// One item of a trace file.
///
/// Locations, communicators and regions are counted from 0, each in the order of the file. A
/// definition comes before the items that refer to it. Events of a location are in order; those of
/// several locations may be mixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// Location: a process with one thread, or a thread that messages are addressed to.
    Location {
        /// Node and process.
        place: Place,
        /// Name of the location.
        name: &'a str,
    },
    /// Another thread of a process.
    Thread {
        /// Location that represents the process.
        rank: u32,
        /// Name of the thread.
        name: &'a str,
    },
    /// Communicator or team of threads.
    Communicator {
        /// Locations in the order of their ranks.
        members: &'a [u32],
    },
    /// Part of the program that events enter and leave.
    Region {
        /// Name of the region.
        name: &'a str,
    },
    /// Quantity that is measured along the events. Only archives have metrics.
    Metric {
        /// Name of the metric.
        name: &'a str,
        /// Unit of its values; empty if there is none.
        unit: &'a str,
    },
    /// Location whose clock the others were compared with; location 0 if there is no such item.
    Master {
        /// Location of the master clock.
        location: u32,
    },
    /// Readings of the clock of a location and of the master's at one instant.
    Sample {
        /// Location of the clock.
        location: u32,
        /// Session of the location, counted from 0.
        session: u32,
        /// Time of the location's clock.
        local: Timestamp<Local>,
        /// Time of the master's clock.
        master: Timestamp<Global>,
    },
    /// Event.
    Event {
        /// Location of the event.
        location: u32,
        /// Time by the location's clock, or by the common clock after a correction.
        time: Timestamp<Global>,
        /// Type of the event.
        what: What<'a>,
    },
    /// Value of a metric.
    Value {
        /// Location that recorded it.
        location: u32,
        /// Time by the location's clock, or by the common clock after a correction.
        time: Timestamp<Global>,
        /// Number of the metric.
        metric: u32,
        /// The value.
        value: Quantity,
    },
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

/// Kind of a one-sided access (RMA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Data are written at the target.
    Put,
    /// Data are read at the target.
    Get,
    /// Data of the target are combined with those of the origin, or compared and exchanged.
    Atomic,
}

impl AccessKind {
    /// All kinds, in the order of their numbers in temporary files.
    pub const ALL: [Self; 3] = [Self::Put, Self::Get, Self::Atomic];

    /// Returns the name in text traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Atomic => "atomic",
        }
    }
}

/// Type of an event: the [`Action`]s of a trace, and types without meaning for other locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// A region is entered.
    Enter {
        /// Number of the region.
        region: u32,
    },
    /// A region is left.
    Leave {
        /// Number of the region.
        region: u32,
    },
    /// Any other event, which is preserved.
    Note(&'a str),
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
    },
    /// A send is found complete.
    CompleteSend {
        /// Id that the send has.
        request: u64,
    },
    /// A message is received.
    Receive {
        /// Sender.
        from: u32,
        /// Communicator of the message.
        communicator: u32,
        /// Tag of the message.
        tag: i32,
        /// Length of the message in bytes, if it is known.
        bytes: Option<u64>,
    },
    /// A collective operation is entered.
    Collective {
        /// Communicator of the operation.
        communicator: u32,
    },
    /// A collective operation is left.
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
        /// Number of bytes that this member contributed, if it is known.
        bytes: Option<u64>,
    },
    /// A receive is posted.
    PostReceive {
        /// Id that the completion has.
        request: u64,
    },
    /// A posted receive is found complete.
    CompleteReceive {
        /// Sender.
        from: u32,
        /// Communicator of the message.
        communicator: u32,
        /// Tag of the message.
        tag: i32,
        /// Id that the post has.
        request: u64,
        /// Length of the message in bytes, if it is known.
        bytes: Option<u64>,
    },
    /// A posted receive ends without a message.
    CancelReceive {
        /// Id that the post has.
        request: u64,
    },
    /// A non-blocking collective operation is started.
    CollectiveStart {
        /// Communicator of the operation.
        communicator: u32,
        /// Id that the completion has.
        request: u64,
    },
    /// A non-blocking collective operation is found complete.
    CollectiveComplete {
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
        /// Id that the start has.
        request: u64,
        /// Number of bytes that this member contributed, if it is known.
        bytes: Option<u64>,
    },
    /// A one-sided access to the memory of another location is issued. It is no message: the target need not take part.
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
    },
    /// A one-sided access is known to be complete at its origin.
    AccessComplete {
        /// Communicator of the window.
        communicator: u32,
        /// Id that the access has.
        request: u64,
    },
    /// Something that another event of the process waits for.
    Signal {
        /// Id that the wait has.
        id: u64,
    },
    /// The end of a wait for a signal.
    Wait {
        /// Id that the signal has.
        id: u64,
    },
    /// Threads are started.
    Fork {
        /// Team of the new threads and of the one that starts them.
        team: u32,
    },
    /// A thread begins.
    ThreadBegin {
        /// Team of the thread.
        team: u32,
    },
    /// A thread ends.
    ThreadEnd {
        /// Team of the thread.
        team: u32,
    },
    /// All threads have ended.
    Join {
        /// Team of the threads and of the one that started them.
        team: u32,
    },
}

impl What<'_> {
    /// Returns the name of the type: that in text traces, where a send with a request is
    /// a `send-start`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Enter { .. } => "enter",
            Self::Leave { .. } => "leave",
            Self::Note(_) => "note",
            Self::Send { .. } => "send",
            Self::CompleteSend { .. } => "send-complete",
            Self::Receive { .. } => "receive",
            Self::Collective { .. } => "collective",
            Self::CollectiveEnd { .. } => "collective-end",
            Self::PostReceive { .. } => "receive-post",
            Self::CompleteReceive { .. } => "receive-complete",
            Self::CancelReceive { .. } => "receive-cancel",
            Self::CollectiveStart { .. } => "collective-start",
            Self::CollectiveComplete { .. } => "collective-complete",
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

    /// Returns the number of bytes of a message or an access, or that a member contributed to a collective operation, if it is known.
    pub const fn bytes(&self) -> Option<u64> {
        match *self {
            Self::Send { bytes, .. }
            | Self::Receive { bytes, .. }
            | Self::CompleteReceive { bytes, .. }
            | Self::CollectiveEnd { bytes, .. }
            | Self::CollectiveComplete { bytes, .. }
            | Self::Access { bytes, .. } => bytes,
            _ => None,
        }
    }

    /// Sets the number of bytes of an event that can have one.
    #[must_use]
    pub const fn with_bytes(mut self, number: Option<u64>) -> Self {
        if let Self::Send { bytes, .. }
        | Self::Receive { bytes, .. }
        | Self::CompleteReceive { bytes, .. }
        | Self::CollectiveEnd { bytes, .. }
        | Self::CollectiveComplete { bytes, .. }
        | Self::Access { bytes, .. } = &mut self
        {
            *bytes = number;
        }
        self
    }

    /// Converts an action, without a number of bytes; `None` if it has no meaning for other locations.
    pub fn from_action(action: Action) -> Option<Self> {
        let number = |communicator: CommunicatorId| communicator.index() as u32;
        Some(match action {
            Action::Internal => return None,
            Action::Send {
                to,
                communicator,
                tag,
            } => Self::Send {
                to: to.index() as u32,
                communicator: number(communicator),
                tag,
                request: None,
                bytes: None,
            },
            Action::Receive {
                from,
                communicator,
                tag,
            } => Self::Receive {
                from: from.index() as u32,
                communicator: number(communicator),
                tag,
                bytes: None,
            },
            Action::Enter { communicator } => Self::Collective {
                communicator: number(communicator),
            },
            Action::Exit {
                communicator,
                kind,
                root,
                sent,
                received,
            } => Self::CollectiveEnd {
                communicator: number(communicator),
                kind,
                root,
                sent,
                received,
                bytes: None,
            },
            Action::PostReceive { request } => Self::PostReceive { request },
            Action::CompleteReceive {
                from,
                communicator,
                tag,
                request,
            } => Self::CompleteReceive {
                from: from.index() as u32,
                communicator: number(communicator),
                tag,
                request,
                bytes: None,
            },
            Action::CancelReceive { request } => Self::CancelReceive { request },
            Action::Start {
                communicator,
                request,
            } => Self::CollectiveStart {
                communicator: number(communicator),
                request,
            },
            Action::Complete {
                communicator,
                kind,
                root,
                sent,
                received,
                request,
            } => Self::CollectiveComplete {
                communicator: number(communicator),
                kind,
                root,
                sent,
                received,
                request,
                bytes: None,
            },
            Action::Signal { id } => Self::Signal { id },
            Action::Wait { id } => Self::Wait { id },
            Action::Fork { team } => Self::Fork { team: number(team) },
            Action::Begin { team } => Self::ThreadBegin { team: number(team) },
            Action::End { team } => Self::ThreadEnd { team: number(team) },
            Action::Join { team } => Self::Join { team: number(team) },
        })
    }
}

/// Collective operations, in the order of their numbers in temporary files.
pub(super) const KINDS: [(CollectiveKind, &str); 12] = [
    (CollectiveKind::Barrier, "barrier"),
    (CollectiveKind::Broadcast, "broadcast"),
    (CollectiveKind::Scatter, "scatter"),
    (CollectiveKind::Gather, "gather"),
    (CollectiveKind::Reduce, "reduce"),
    (CollectiveKind::Allreduce, "allreduce"),
    (CollectiveKind::Allgather, "allgather"),
    (CollectiveKind::Alltoall, "alltoall"),
    (CollectiveKind::Alltoallv, "alltoallv"),
    (CollectiveKind::ReduceScatter, "reduce_scatter"),
    (CollectiveKind::Scan, "scan"),
    (CollectiveKind::Exscan, "exscan"),
];

/// Returns the index of a kind in [`KINDS`]; `None` for forks and joins, which have their own
/// events.
pub(super) fn kind_number(kind: CollectiveKind) -> Option<usize> {
    KINDS.iter().position(|(known, _)| *known == kind)
}

/// Data of a member of a collective operation, `[sent, received]`, in the order of their numbers in
/// temporary files.
pub(super) const DATA: [([bool; 2], &str); 4] = [
    ([false, false], "none"),
    ([true, false], "sent"),
    ([false, true], "received"),
    ([true, true], "both"),
];
