//! Accesses of a thread that are not complete yet, and their ids in the trace.

use std::collections::BTreeMap;

use downbeat_trace::formats::AccessKind;

use crate::record::Access;

/// Accesses of a thread.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    /// Those that are not complete, by window and target.
    pending: BTreeMap<(u32, i32), Vec<Pending>>,
    issued: [u64; 3],
    next: u64,
}

/// Access that is not complete.
#[derive(Debug)]
struct Pending {
    id: u64,
    request: Option<u64>,
}

impl Accesses {
    /// Number of accesses of each kind.
    pub(super) const fn issued(&self) -> [u64; 3] {
        self.issued
    }

    /// Adds an access, and returns its id.
    pub(super) fn issue(&mut self, access: Access) -> u64 {
        let id = self.next;
        self.next += 1;
        self.issued[access.kind as usize] += 1;
        let pending = self.pending.entry((access.window, access.target));
        pending.or_default().push(Pending {
            id,
            request: access.request,
        });
        id
    }

    /// Removes an access whose call failed.
    pub(super) fn withdraw(&mut self, kind: AccessKind, id: u64) {
        self.issued[kind as usize] -= 1;
        self.pending
            .values_mut()
            .for_each(|pending| pending.retain(|access| access.id != id));
    }

    /// Completes the accesses in a window to one target or all, or only the one with this request. Returns their ids.
    pub(super) fn complete(
        &mut self,
        window: u32,
        target: Option<i32>,
        request: Option<u64>,
    ) -> Vec<u64> {
        let [first, last] = match target {
            Some(target) => [target; 2],
            None => [i32::MIN, i32::MAX],
        };
        let mut ids = vec![];
        for (_, pending) in self.pending.range_mut((window, first)..=(window, last)) {
            let is_complete = |access: &mut Pending| request.is_none() || access.request == request;
            ids.extend(pending.extract_if(.., is_complete).map(|access| access.id));
        }
        ids
    }
}
