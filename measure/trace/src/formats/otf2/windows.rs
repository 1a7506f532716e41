//! Accesses, and operations of all members of a window, as events of a new archive.

use downbeat_otf2::{CollectiveOp, Event, RmaAtomicType, RmaSyncLevel, RmaWinRef};

use super::operations::operation_of;
use crate::{AccessKind, CollectiveKind};

/// Returns the event of an access.
pub(super) const fn access(
    kind: AccessKind,
    (window, remote): (u32, u32),
    bytes: u64,
    matching_id: u64,
) -> Event<'static> {
    let win = RmaWinRef(window);
    match kind {
        AccessKind::Put => Event::RmaPut {
            win,
            remote,
            bytes,
            matching_id,
        },
        AccessKind::Get => Event::RmaGet {
            win,
            remote,
            bytes,
            matching_id,
        },
        AccessKind::Atomic => Event::RmaAtomic {
            win,
            remote,
            atomic_type: RmaAtomicType::ACCUMULATE,
            bytes_sent: bytes,
            bytes_received: 0,
            matching_id,
        },
    }
}

/// Returns the end of an operation. One in which all members have the same part is a barrier, which need not synchronize them.
pub(super) fn collective_end(
    window: u32,
    kind: CollectiveKind,
    root: u32,
    [bytes_sent, bytes_received]: [u64; 2],
) -> Event<'static> {
    let win = RmaWinRef(window);
    let waits = bytes_sent > 0;
    if kind == CollectiveKind::Allreduce && waits == (bytes_received > 0) {
        let process = match waits {
            true => RmaSyncLevel::PROCESS,
            false => RmaSyncLevel::NONE,
        };
        return Event::RmaCollectiveEnd {
            operation: CollectiveOp::BARRIER,
            sync_level: RmaSyncLevel(RmaSyncLevel::MEMORY.0 | process.0),
            win,
            root,
            bytes_sent: 0,
            bytes_received: 0,
        };
    }
    Event::RmaCollectiveEnd {
        operation: operation_of(kind),
        sync_level: RmaSyncLevel(RmaSyncLevel::MEMORY.0 | RmaSyncLevel::PROCESS.0),
        win,
        root,
        bytes_sent,
        bytes_received,
    }
}
