//! Events that may matter to other locations.

use rustc_hash::FxHashMap;

use super::record::{EventRecord, Fields, Order};

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
    },
    Receive {
        from: u32,
        communicator: u32,
        tag: u32,
    },
    CollectiveBegin,
    CollectiveEnd {
        operation: u8,
        communicator: u32,
        root: u32,
        sent: u64,
        received: u64,
    },
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

/// Mappings of a location's own references to global ones, where these differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    pub(super) regions: FxHashMap<u32, u32>,
    pub(super) communicators: FxHashMap<u32, u32>,
}

// Record kinds of OTF2.
const ENTER: u8 = 12;
const LEAVE: u8 = 13;
const MPI_SEND: u8 = 14;
const MPI_ISEND: u8 = 15;
const MPI_RECV: u8 = 18;
const MPI_IRECV: u8 = 19;
const MPI_COLLECTIVE_BEGIN: u8 = 22;
const MPI_COLLECTIVE_END: u8 = 23;
const THREAD_FORK: u8 = 53;
const THREAD_JOIN: u8 = 54;
const THREAD_TEAM_BEGIN: u8 = 55;
const THREAD_TEAM_END: u8 = 56;
const MPI_ISEND_COMPLETE: u8 = 16;
const MPI_IRECV_REQUEST: u8 = 17;
const MPI_REQUEST_TEST: u8 = 20;
const MPI_REQUEST_CANCELLED: u8 = 21;
const NON_BLOCKING_COLLECTIVE_REQUEST: u8 = 85;
const NON_BLOCKING_COLLECTIVE_COMPLETE: u8 = 86;

impl Otf2Event {
    /// Returns true if trace files have an item for the event.
    pub(super) fn is_item(self) -> bool {
        match self {
            Self::Other(kind) => matches!(
                kind,
                MPI_ISEND_COMPLETE
                    | MPI_IRECV_REQUEST
                    | MPI_REQUEST_TEST
                    | MPI_REQUEST_CANCELLED
                    | NON_BLOCKING_COLLECTIVE_REQUEST
                    | NON_BLOCKING_COLLECTIVE_COMPLETE
            ),
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
            Self::CollectiveEnd { .. } => "end of a collective operation",
            Self::Fork => "fork",
            Self::Join => "join",
            Self::TeamBegin { .. } => "thread-begin",
            Self::TeamEnd { .. } => "thread-end",
            Self::Other(MPI_ISEND_COMPLETE) => "send complete",
            Self::Other(MPI_IRECV_REQUEST) => "receive posted",
            Self::Other(MPI_REQUEST_TEST) => "request tested",
            Self::Other(MPI_REQUEST_CANCELLED) => "request cancelled",
            Self::Other(NON_BLOCKING_COLLECTIVE_REQUEST) => "non-blocking collective operation",
            Self::Other(_) => "end of a non-blocking collective operation",
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
                }
            }
            MPI_RECV | MPI_IRECV => {
                let (from, communicator) =
                    (data.half()?, mapped(&mut data, &mappings.communicators)?);
                Self::Receive {
                    from,
                    communicator,
                    tag: data.half()?,
                }
            }
            MPI_COLLECTIVE_BEGIN => Self::CollectiveBegin,
            MPI_COLLECTIVE_END => {
                let (operation, communicator) =
                    (data.byte()?, mapped(&mut data, &mappings.communicators)?);
                let (root, sent, received) = (data.half()?, data.number()?, data.number()?);
                Self::CollectiveEnd {
                    operation,
                    communicator,
                    root,
                    sent,
                    received,
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

/// Decodes a reference and maps it to a global one. As in OTF2, those without a mapping stay the same.
#[inline]
fn mapped(data: &mut Fields<'_>, mapping: &FxHashMap<u32, u32>) -> Option<u32> {
    let number = data.half()?;
    if mapping.is_empty() {
        return Some(number);
    }
    Some(mapping.get(&number).copied().unwrap_or(number))
}
