//! Indices of the operations that a member enters and leaves.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Track;

/// Operations of a member on one track: gives each enter and exit the index of its operation.
///
/// The threads of a process are one member, but each leaves only what it entered: an archive has
/// all events of a thread before all events of the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Number of operations that were entered.
    entered: u32,
    /// Number of forks or joins that were left, also by a member that did not enter them.
    left: u32,
    /// Location of the last blocking operation, and its blocking operations that it did not leave.
    last: u32,
    blocking: VecDeque<u32>,
    /// Blocking operations that other locations did not leave.
    others: Option<Box<FxHashMap<u32, VecDeque<u32>>>>,
    /// Operations that were not left, by their locations and requests.
    requests: Option<Box<FxHashMap<(u32, u64), u32>>>,
}

impl Turns {
    /// Returns the index of the operation that a location enters now.
    pub(crate) fn enter(&mut self, track: Track, location: u32, request: Option<u64>) -> u32 {
        let index = self.entered;
        self.entered += 1;
        if let Some(request) = request {
            let requests = self.requests.get_or_insert_default();
            requests.insert((location, request), index);
        } else if track == Track::Collective {
            self.blocking_of(location).push_back(index);
        }
        index
    }

    /// Returns the index of the operation that a location leaves now; `None` if it did not enter
    /// one.
    pub(crate) fn exit(
        &mut self,
        track: Track,
        location: u32,
        request: Option<u64>,
    ) -> Option<u32> {
        match (request, track) {
            (Some(request), _) => self.requests.as_mut()?.remove(&(location, request)),
            (None, Track::Collective) => self.blocking_of(location).pop_front(),
            (None, Track::Fork | Track::Join) => {
                self.left += 1;
                Some(self.left - 1)
            }
        }
    }

    /// Returns the blocking operations that a location did not leave.
    fn blocking_of(&mut self, location: u32) -> &mut VecDeque<u32> {
        if self.last != location {
            let others = self.others.as_mut();
            let found = others.and_then(|others| others.remove(&location));
            let before = std::mem::replace(&mut self.blocking, found.unwrap_or_default());
            if !before.is_empty() {
                let others = self.others.get_or_insert_default();
                others.insert(self.last, before);
            }
            self.last = location;
        }
        &mut self.blocking
    }
}
