//! Events that may matter to other locations.

use rustc_hash::FxHashMap;

use super::record::{EventRecord, Fields, Order};
use super::unexamined::Relation;

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
    /// Any other event, with its kind of record.
    Other(u8),
}

/// Statement of a member about a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otf2Operation {
    pub(super) operation: u8,
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

/// Mappings of a location's own references to global ones, where these differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    pub(super) regions: FxHashMap<u32, u32>,
    pub(super) communicators: FxHashMap<u32, u32>,
    pub(super) windows: FxHashMap<u32, u32>,
}

// Record kinds of OTF2.
pub(super) const ENTER: u8 = 12;
pub(super) const LEAVE: u8 = 13;
pub(super) const MPI_SEND: u8 = 14;
const MPI_ISEND: u8 = 15;
pub(super) const MPI_RECV: u8 = 18;
pub(super) const MPI_IRECV: u8 = 19;
pub(super) const MPI_COLLECTIVE_BEGIN: u8 = 22;
pub(super) const MPI_COLLECTIVE_END: u8 = 23;
pub(super) const THREAD_FORK: u8 = 53;
pub(super) const THREAD_JOIN: u8 = 54;
pub(super) const THREAD_TEAM_BEGIN: u8 = 55;
pub(super) const THREAD_TEAM_END: u8 = 56;
const MPI_ISEND_COMPLETE: u8 = 16;
pub(super) const MPI_IRECV_REQUEST: u8 = 17;
const MPI_REQUEST_TEST: u8 = 20;
pub(super) const MPI_REQUEST_CANCELLED: u8 = 21;
const OMP_ACQUIRE_LOCK: u8 = 26;
const OMP_RELEASE_LOCK: u8 = 27;
const RMA_COLLECTIVE_BEGIN: u8 = 37;
const RMA_COLLECTIVE_END: u8 = 38;
const THREAD_ACQUIRE_LOCK: u8 = 57;
const THREAD_RELEASE_LOCK: u8 = 58;
const THREAD_CREATE: u8 = 62;
const THREAD_BEGIN: u8 = 63;
const THREAD_WAIT: u8 = 64;
const THREAD_END: u8 = 65;
pub(super) const NON_BLOCKING_COLLECTIVE_REQUEST: u8 = 85;
pub(super) const NON_BLOCKING_COLLECTIVE_COMPLETE: u8 = 86;

/// Level of an RMA operation at which its members wait for each other.
const SYNC_PROCESSES: u32 = 1;
/// Operation of which that decides.
const BARRIER: u8 = 0;
/// Operation of which the data of each member do.
const ALLREDUCE: u8 = 11;

impl Otf2Event {
    /// Returns the number of bytes of a message, or that a member contributed to a collective
    /// operation.
    pub(super) fn length(&self) -> Option<u64> {
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
            Self::Other(kind) => matches!(kind, MPI_ISEND_COMPLETE | MPI_REQUEST_TEST),
            _ => true,
        }
    }

    /// Returns the name of a note for events without a meaning for other locations.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Enter { .. } => "enter",
            Self::Leave { .. } => "leave",
            Self::Send { .. } => "send",
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
            Self::Other(MPI_ISEND_COMPLETE) => "send complete",
            Self::Other(_) => "request tested",
        }
    }

    /// Decodes a record; `None` if its data are not valid.
    #[inline]
    pub(super) fn from_record(
        record: &EventRecord<'_>,
        order: Order,
        mappings: &Mappings,
    ) -> Option<Self> {
        let mut data = Fields::new(record.data, order);
        Some(match record.kind {
            ENTER => Self::Enter {
                region: mapped(&mut data, &mappings.regions)?,
            },
            LEAVE => Self::Leave {
                region: mapped(&mut data, &mappings.regions)?,
            },
            MPI_SEND | MPI_ISEND => {
                let (to, communicator) =
                    (data.half()?, mapped(&mut data, &mappings.communicators)?);
                Self::Send {
                    to,
                    communicator,
                    tag: data.half()?,
                    length: data.number()?,
                }
            }
            MPI_RECV | MPI_IRECV => {
                let (from, communicator) =
                    (data.half()?, mapped(&mut data, &mappings.communicators)?);
                let (tag, length) = (data.half()?, data.number()?);
                if record.kind == MPI_RECV {
                    return Some(Self::Receive {
                        from,
                        communicator,
                        tag,
                        length,
                    });
                }
                Self::CompleteReceive {
                    from,
                    communicator,
                    tag,
                    length,
                    request: data.number()?,
                }
            }
            MPI_IRECV_REQUEST => Self::PostReceive {
                request: data.number()?,
            },
            MPI_REQUEST_CANCELLED => Self::CancelReceive {
                request: data.number()?,
            },
            MPI_COLLECTIVE_BEGIN => Self::CollectiveBegin,
            MPI_COLLECTIVE_END => Self::CollectiveEnd(operation(&mut data, mappings)?),
            NON_BLOCKING_COLLECTIVE_REQUEST => Self::CollectiveStart {
                request: data.number()?,
            },
            NON_BLOCKING_COLLECTIVE_COMPLETE => Self::CollectiveComplete {
                operation: operation(&mut data, mappings)?,
                request: data.number()?,
            },
            RMA_COLLECTIVE_BEGIN => Self::RmaCollectiveBegin,
            RMA_COLLECTIVE_END => {
                let (operation, level) = (data.byte()?, data.half()?);
                let (communicator, root) = (mapped(&mut data, &mappings.windows)?, data.half()?);
                let mut moves = [data.number()?, data.number()?];
                if operation == BARRIER {
                    // Not all members need to synchronize.
                    moves = [u64::from(level & SYNC_PROCESSES != 0); 2];
                }
                Self::RmaCollectiveEnd(Otf2Operation {
                    operation: if operation == BARRIER {
                        ALLREDUCE
                    } else {
                        operation
                    },
                    communicator,
                    root,
                    sent: moves[0],
                    received: moves[1] > 0,
                })
            }
            OMP_ACQUIRE_LOCK | THREAD_ACQUIRE_LOCK | OMP_RELEASE_LOCK | THREAD_RELEASE_LOCK => {
                if matches!(record.kind, THREAD_ACQUIRE_LOCK | THREAD_RELEASE_LOCK) {
                    let _paradigm = data.byte()?;
                }
                let (of, order) = (data.half()?, data.half()?);
                let lock = |order: u32| Otf2Signal {
                    kind: Otf2SignalKind::Released,
                    of,
                    number: order.into(),
                };
                match record.kind {
                    OMP_RELEASE_LOCK | THREAD_RELEASE_LOCK => Self::Signal(lock(order)),
                    // A release has the number of its acquisition.
                    kind => match order.checked_sub(1) {
                        Some(before) => Self::Wait(lock(before)),
                        None => Self::Other(kind),
                    },
                }
            }
            THREAD_CREATE | THREAD_BEGIN | THREAD_END | THREAD_WAIT => {
                let signal = Otf2Signal {
                    kind: match record.kind {
                        THREAD_CREATE | THREAD_BEGIN => Otf2SignalKind::ThreadCreated,
                        _ => Otf2SignalKind::ThreadEnded,
                    },
                    of: mapped(&mut data, &mappings.communicators)?,
                    number: data.number()?,
                };
                match record.kind {
                    THREAD_CREATE | THREAD_END => Self::Signal(signal),
                    _ => Self::Wait(signal),
                }
            }
            THREAD_FORK => Self::Fork,
            THREAD_JOIN => Self::Join,
            THREAD_TEAM_BEGIN => Self::TeamBegin {
                team: mapped(&mut data, &mappings.communicators)?,
            },
            THREAD_TEAM_END => Self::TeamEnd {
                team: mapped(&mut data, &mappings.communicators)?,
            },
            kind => Self::Other(kind),
        })
    }
}

fn operation(data: &mut Fields<'_>, mappings: &Mappings) -> Option<Otf2Operation> {
    Some(Otf2Operation {
        operation: data.byte()?,
        communicator: mapped(data, &mappings.communicators)?,
        root: data.half()?,
        sent: data.number()?,
        received: data.number()? > 0,
    })
}

/// Decodes a reference and maps it to a global one. As in OTF2, those without a mapping stay the same.
#[inline]
fn mapped(data: &mut Fields<'_>, mapping: &FxHashMap<u32, u32>) -> Option<u32> {
    let number = data.half()?;
    if mapping.is_empty() {
        return Some(number);
    }
    Some(mapping.get(&number).copied().unwrap_or(number))
}
