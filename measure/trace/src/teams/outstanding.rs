//! Indices of the operations that a member enters and leaves.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Track;

/// Operations of a member on one track: gives each enter and exit the index of its operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Number of operations that were entered.
    entered: u32,
    /// Number of forks or joins that were left, also by a member that did not enter them.
    left: u32,
    /// Blocking operations that were not left, by the locations that entered them: an archive may
    /// have all events of a thread before all events of the next thread.
    blocking: FxHashMap<u32, VecDeque<u32>>,
    /// Operations with a request that were not left by the locations that entered them.
    requests: FxHashMap<u64, (u32, u32)>,
}

impl Turns {
    /// Returns the index of the operation that a location enters now.
    pub(crate) fn enter(&mut self, track: Track, location: u32, request: Option<u64>) -> u32 {
        let index = self.entered;
        self.entered += 1;
        if let Some(request) = request {
            self.requests.insert(request, (location, index));
        } else if track == Track::Collective {
            self.blocking.entry(location).or_default().push_back(index);
        }
        index
    }

    /// Returns the index of the operation that a location leaves now; `None` if it was not entered.
    pub(crate) fn exit(
        &mut self,
        track: Track,
        location: u32,
        request: Option<u64>,
    ) -> Option<u32> {
        match (request, track) {
            (Some(request), _) => {
                let (entered_by, index) = *self.requests.get(&request)?;
                // Another thread may complete several operations that had this request in turns.
                if entered_by == location {
                    self.requests.remove(&request);
                }
                Some(index)
            }
            (None, Track::Collective) => self.blocking.get_mut(&location)?.pop_front(),
            (None, Track::Fork | Track::Join) => {
                self.left += 1;
                Some(self.left - 1)
            }
        }
    }

    /// Returns the location that entered the operation with this request.
    pub(super) fn entered_by(&self, request: u64) -> Option<u32> {
        self.requests.get(&request).map(|(location, _)| *location)
    }
}
