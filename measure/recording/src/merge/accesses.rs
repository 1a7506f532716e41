//! Accesses of a thread that are not complete yet, and their ids in the trace.

use std::collections::BTreeMap;

use crate::record::Access;

/// Accesses of a thread that are not complete.
#[derive(Debug, Default)]
pub(super) struct PendingAccesses {
    /// Accesses by window and target.
    pending: BTreeMap<(u32, i32), Vec<PendingAccess>>,
    next: u64,
}

/// Id of an access in the trace, and in its record if it can be completed alone.
#[derive(Debug)]
struct PendingAccess(u64, Option<u64>);

impl PendingAccesses {
    /// Adds an access, and returns its id.
    pub(super) fn issue(&mut self, access: Access) -> u64 {
        let id = self.next;
        self.next += 1;
        let pending = self.pending.entry((access.window, access.target));
        let access = PendingAccess(id, access.request);
        pending.or_default().push(access);
        id
    }

    /// Removes an access whose call failed.
    pub(super) fn withdraw(&mut self, id: u64) {
        for pending in self.pending.values_mut() {
            pending.retain(|access| access.0 != id);
        }
    }

    /// Completes the accesses in a window to one target or all, or only the one with this
    /// request. Returns their ids.
    pub(super) fn complete(
        &mut self,
        window: u32,
        target: Option<i32>,
        request: Option<u64>,
    ) -> Vec<u64> {
        let (first, last) = target.map_or((i32::MIN, i32::MAX), |target| (target, target));
        let mut ids = vec![];
        for (_, pending) in self.pending.range_mut((window, first)..=(window, last)) {
            let complete = pending.extract_if(.., |of| request.is_none() || of.1 == request);
            ids.extend(complete.map(|access| access.0));
        }
        ids
    }
}
