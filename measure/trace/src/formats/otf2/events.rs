//! Events that may matter to other locations.

use downbeat_otf2::{CollectiveOp, CommRef, Event, RmaSyncLevel, RmaWinRef};

use super::unexamined::Relation;
use crate::formats::AccessKind;

/// Event with the data that may matter to other locations. References are global ones of the
/// archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otf2Event {
    Enter {
        region: u32,
    },
    Leave {
        region: u32,
    },
    Send {
        to: u32,
        communicator: u32,
        tag: u32,
        length: u64,
        /// Request of a non-blocking send.
        request: Option<u64>,
    },
    CompleteSend {
        request: u64,
    },
    Receive {
        from: u32,
        communicator: u32,
        tag: u32,
        length: u64,
    },
    PostReceive {
        request: u64,
    },
    CompleteReceive {
        from: u32,
        communicator: u32,
        tag: u32,
        length: u64,
        request: u64,
    },
    CancelReceive {
        request: u64,
    },
    CollectiveBegin,
    CollectiveEnd(Otf2Operation),
    CollectiveStart {
        request: u64,
    },
    CollectiveComplete {
        operation: Otf2Operation,
        request: u64,
    },
    RmaCollectiveBegin,
    /// The communicator is a window.
    RmaCollectiveEnd(Otf2Operation),
    Access {
        kind: AccessKind,
        window: u32,
        remote: u32,
        bytes: u64,
        request: u64,
    },
    AccessComplete {
        window: u32,
        request: u64,
    },
    Signal(Otf2Signal),
    Wait(Otf2Signal),
    Fork,
    Join,
    TeamBegin {
        team: u32,
    },
    TeamEnd {
        team: u32,
    },
    /// Values of metrics, by the class or instance, with their number.
    Metric {
        metric: u32,
        values: u8,
    },
    /// Note, with the reference of its string.
    Note {
        text: u32,
    },
    /// Event of an [exact trace](super::exact), with the reference of its line.
    Stated {
        text: u32,
    },
    /// Any other event, with its kind of record.
    Other(u8),
}

/// Statement of a member about a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otf2Operation {
    pub(super) operation: CollectiveOp,
    pub(super) communicator: u32,
    pub(super) root: u32,
    /// Number of bytes that the member contributed.
    pub(super) sent: u64,
    pub(super) received: bool,
}

/// Event that another one of the process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otf2Signal {
    pub(super) kind: Otf2SignalKind,
    /// Lock, or contingent of threads.
    pub(super) of: u32,
    pub(super) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otf2SignalKind {
    ThreadCreated,
    ThreadEnded,
    Released,
}

impl Otf2Signal {
    fn released(lock: u32, acquisition_order: u32) -> Self {
        Self {
            kind: Otf2SignalKind::Released,
            of: lock,
            number: acquisition_order.into(),
        }
    }

    fn thread(kind: Otf2SignalKind, CommRef(of): CommRef, number: u64) -> Self {
        Self { kind, of, number }
    }

    /// Returns an id that differs from those of other signals; `None` if there are too many.
    pub(super) fn id(self) -> Option<u64> {
        let number = u32::try_from(self.number).ok()?;
        let kind = self.kind as u64;
        (self.of < 1 << 30).then_some(kind << 62 | u64::from(self.of) << 32 | u64::from(number))
    }

    pub(super) fn relation(self) -> Relation {
        match self.kind {
            Otf2SignalKind::Released => Relation::Lock,
            Otf2SignalKind::ThreadCreated | Otf2SignalKind::ThreadEnded => Relation::Thread,
        }
    }
}

// Kind of events without a meaning for other locations that are notes.
const MPI_REQUEST_TEST: u8 = 20;

impl Otf2Event {
    /// Returns the number of bytes of a message, or that a member contributed to a collective
    /// operation.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Send { length, .. }
            | Self::Receive { length, .. }
            | Self::CompleteReceive { length, .. } => Some(*length),
            Self::CollectiveEnd(operation) | Self::CollectiveComplete { operation, .. } => {
                Some(operation.sent)
            }
            _ => None,
        }
    }

    /// Returns true if trace files have an item for the event.
    pub(super) fn is_item(self) -> bool {
        match self {
            Self::Other(kind) => kind == MPI_REQUEST_TEST,
            _ => true,
        }
    }

    /// Returns the name of a note for events without a meaning for other locations.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Enter { .. } => "enter",
            Self::Leave { .. } => "leave",
            Self::Send { .. } => "send",
            Self::CompleteSend { .. } => "send complete",
            Self::Receive { .. } => "receive",
            Self::CollectiveBegin => "collective operation",
            Self::CollectiveEnd(_) => "end of a collective operation",
            Self::PostReceive { .. } => "receive posted",
            Self::CompleteReceive { .. } => "receive",
            Self::CancelReceive { .. } => "request cancelled",
            Self::CollectiveStart { .. } => "non-blocking collective operation",
            Self::CollectiveComplete { .. } => "end of a non-blocking collective operation",
            Self::RmaCollectiveBegin => "RMA collective operation",
            Self::RmaCollectiveEnd(_) => "end of an RMA collective operation",
            Self::Access { kind, .. } => kind.name(),
            Self::AccessComplete { .. } => "access complete",
            Self::Signal(Otf2Signal { kind, .. }) => match kind {
                Otf2SignalKind::ThreadCreated => "thread created",
                Otf2SignalKind::ThreadEnded => "thread ended",
                Otf2SignalKind::Released => "lock released",
            },
            Self::Wait(Otf2Signal { kind, .. }) => match kind {
                Otf2SignalKind::ThreadCreated => "thread began",
                Otf2SignalKind::ThreadEnded => "thread joined",
                Otf2SignalKind::Released => "lock acquired",
            },
            Self::Fork => "fork",
            Self::Join => "join",
            Self::TeamBegin { .. } => "thread-begin",
            Self::TeamEnd { .. } => "thread-end",
            Self::Metric { .. } => "values of metrics",
            Self::Note { .. } | Self::Stated { .. } => "note",
            Self::Other(_) => "request tested",
        }
    }

    const fn access(
        kind: AccessKind,
        RmaWinRef(window): RmaWinRef,
        remote: u32,
        bytes: u64,
        request: u64,
    ) -> Self {
        Self::Access {
            kind,
            window,
            remote,
            bytes,
            request,
        }
    }

    /// Returns the event, as far as it may matter to other locations.
    #[inline]
    pub(super) fn of(event: &Event<'_>) -> Self {
        match *event {
            Event::Enter { region } => Self::Enter { region: region.0 },
            Event::Leave { region } => Self::Leave { region: region.0 },
            Event::MpiSend {
                receiver,
                communicator,
                tag,
                length,
            } => Self::Send {
                to: receiver,
                communicator: communicator.0,
                tag,
                length,
                request: None,
            },
            Event::MpiIsend {
                receiver,
                communicator,
                tag,
                length,
                request,
            } => Self::Send {
                to: receiver,
                communicator: communicator.0,
                tag,
                length,
                request: Some(request),
            },
            Event::MpiIsendComplete { request } => Self::CompleteSend { request },
            Event::MpiRecv {
                sender,
                communicator,
                tag,
                length,
            } => Self::Receive {
                from: sender,
                communicator: communicator.0,
                tag,
                length,
            },
            // It is matched there. The receive of the message follows at the same location.
            Event::MpiProbe {
                sender,
                communicator,
                tag,
                message,
            } if message != u64::MAX => Self::Receive {
                from: sender,
                communicator: communicator.0,
                tag,
                length: 0,
            },
            Event::MpiIrecv {
                sender,
                communicator,
                tag,
                length,
                request,
            } => Self::CompleteReceive {
                from: sender,
                communicator: communicator.0,
                tag,
                length,
                request,
            },
            Event::MpiIrecvRequest { request } => Self::PostReceive { request },
            Event::MpiRequestCancelled { request } => Self::CancelReceive { request },
            Event::MpiCollectiveBegin {} => Self::CollectiveBegin,
            Event::MpiCollectiveEnd {
                operation,
                communicator,
                root,
                size_sent: sent,
                size_received,
            } => Self::CollectiveEnd(Otf2Operation {
                operation,
                communicator: communicator.0,
                root,
                sent,
                received: size_received > 0,
            }),
            Event::NonBlockingCollectiveRequest { request } => Self::CollectiveStart { request },
            Event::NonBlockingCollectiveComplete {
                operation,
                communicator,
                root,
                size_sent: sent,
                size_received,
                request,
            } => Self::CollectiveComplete {
                operation: Otf2Operation {
                    operation,
                    communicator: communicator.0,
                    root,
                    sent,
                    received: size_received > 0,
                },
                request,
            },
            Event::RmaCollectiveBegin {} => Self::RmaCollectiveBegin,
            Event::RmaCollectiveEnd {
                operation,
                sync_level,
                win,
                root,
                bytes_sent,
                bytes_received,
            } => {
                let (mut sent, mut received) = (bytes_sent, bytes_received > 0);
                let mut of = operation;
                if operation == CollectiveOp::BARRIER {
                    // Not all members need to synchronize.
                    received = sync_level.0 & RmaSyncLevel::PROCESS.0 != 0;
                    sent = received.into();
                    // The data of each member of this one decide.
                    of = CollectiveOp::ALLREDUCE;
                }
                Self::RmaCollectiveEnd(Otf2Operation {
                    operation: of,
                    communicator: win.0,
                    root,
                    sent,
                    received,
                })
            }
            Event::RmaPut {
                win,
                remote,
                bytes,
                matching_id,
            } => Self::access(AccessKind::Put, win, remote, bytes, matching_id),
            Event::RmaGet {
                win,
                remote,
                bytes,
                matching_id,
            } => Self::access(AccessKind::Get, win, remote, bytes, matching_id),
            Event::RmaAtomic {
                win,
                remote,
                bytes_sent,
                bytes_received,
                matching_id,
                ..
            } => {
                let bytes = bytes_sent.max(bytes_received);
                Self::access(AccessKind::Atomic, win, remote, bytes, matching_id)
            }
            Event::RmaOpCompleteBlocking { win, matching_id }
            | Event::RmaOpCompleteNonBlocking { win, matching_id }
            | Event::RmaOpCompleteRemote { win, matching_id } => Self::AccessComplete {
                window: win.0,
                request: matching_id,
            },
            Event::OmpReleaseLock {
                lock,
                acquisition_order,
            }
            | Event::ThreadReleaseLock {
                lock,
                acquisition_order,
                ..
            } => Self::Signal(Otf2Signal::released(lock, acquisition_order)),
            Event::OmpAcquireLock {
                lock,
                acquisition_order,
            }
            | Event::ThreadAcquireLock {
                lock,
                acquisition_order,
                ..
            } => match acquisition_order.checked_sub(1) {
                // A release has the number of its acquisition.
                Some(before) => Self::Wait(Otf2Signal::released(lock, before)),
                None => Self::Other(event.kind()),
            },
            Event::ThreadCreate {
                contingent,
                sequence,
            } => Self::Signal(Otf2Signal::thread(
                Otf2SignalKind::ThreadCreated,
                contingent,
                sequence,
            )),
            Event::ThreadBegin {
                contingent,
                sequence,
            } => Self::Wait(Otf2Signal::thread(
                Otf2SignalKind::ThreadCreated,
                contingent,
                sequence,
            )),
            Event::ThreadEnd {
                contingent,
                sequence,
            } => Self::Signal(Otf2Signal::thread(
                Otf2SignalKind::ThreadEnded,
                contingent,
                sequence,
            )),
            Event::ThreadWait {
                contingent,
                sequence,
            } => Self::Wait(Otf2Signal::thread(
                Otf2SignalKind::ThreadEnded,
                contingent,
                sequence,
            )),
            Event::Metric { metric, values } => Self::Metric {
                metric: metric.0,
                values: values.len() as u8,
            },
            Event::ThreadFork { .. } => Self::Fork,
            Event::ThreadJoin { .. } => Self::Join,
            Event::ThreadTeamBegin { team } => Self::TeamBegin { team: team.0 },
            Event::ThreadTeamEnd { team } => Self::TeamEnd { team: team.0 },
            _ => Self::Other(event.kind()),
        }
    }
}
