//! Accesses, and operations of all members of a window, as events of a new archive.

use downbeat_otf2::event;
use downbeat_otf2::{Event, RmaAtomicType, RmaSyncLevel, RmaWinRef};

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
        AccessKind::Put => Event::RmaPut(event::RmaPut {
            win,
            remote,
            bytes,
            matching_id,
        }),
        AccessKind::Get => Event::RmaGet(event::RmaGet {
            win,
            remote,
            bytes,
            matching_id,
        }),
        AccessKind::Atomic => Event::RmaAtomic(event::RmaAtomic {
            win,
            remote,
            atomic_type: RmaAtomicType::ACCUMULATE,
            bytes_sent: bytes,
            bytes_received: 0,
            matching_id,
        }),
    }
}

/// Returns the end of an operation. One in which all members have the same part is a barrier, which need not synchronize them.
pub(super) fn collective_end(
    window: u32,
    kind: CollectiveKind,
    root: u32,
    [bytes_sent, bytes_received]: [u64; 2],
) -> Event<'static> {
    let waits = bytes_sent > 0;
    let is_barrier = kind == CollectiveKind::Allreduce && waits == (bytes_received > 0);
    let process = match is_barrier && !waits {
        true => RmaSyncLevel::NONE,
        false => RmaSyncLevel::PROCESS,
    };
    let bytes = |bytes| if is_barrier { 0 } else { bytes };
    Event::RmaCollectiveEnd(event::RmaCollectiveEnd {
        operation: operation_of(if is_barrier {
            CollectiveKind::Barrier
        } else {
            kind
        }),
        sync_level: RmaSyncLevel(RmaSyncLevel::MEMORY.0 | process.0),
        win: RmaWinRef(window),
        root,
        bytes_sent: bytes(bytes_sent),
        bytes_received: bytes(bytes_received),
    })
}
