//! Indices of the operations that a member enters and leaves.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::Track;

/// Operations of a member on one track: gives each enter and exit the index of its operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Number of operations that were entered.
    entered: u32,
    /// Number of operations that were left before the first one that was not.
    left: u32,
    /// All others, if one of them is not blocking.
    outstanding: Option<Box<Outstanding>>,
}

/// Operations from the first one that was not left.
#[derive(Clone, Debug, Default)]
struct Outstanding {
    /// For each of them, true if it was left.
    left: VecDeque<bool>,
    /// Those of blocking operations.
    blocking: VecDeque<u32>,
    requests: FxHashMap<u64, u32>,
}

impl Turns {
    /// Returns the index of the next operation.
    pub(crate) fn enter(&mut self, request: Option<u64>) -> u32 {
        let index = self.entered;
        self.entered += 1;
        if self.outstanding.is_none() && request.is_some() {
            // Members of forks and joins may leave what they did not enter, but these have no
            // requests.
            self.outstanding = Some(Box::new(Outstanding {
                left: (self.left..index).map(|_| false).collect(),
                blocking: (self.left..index).collect(),
                requests: FxHashMap::default(),
            }));
        }
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.left.push_back(false);
            match request {
                Some(request) => drop(outstanding.requests.insert(request, index)),
                None => outstanding.blocking.push_back(index),
            }
        }
        index
    }

    /// Returns the index of the operation that is left now; `None` if it was not entered.
    pub(crate) fn exit(&mut self, track: Track, request: Option<u64>) -> Option<u32> {
        let Some(outstanding) = &mut self.outstanding else {
            let is_entered = track != Track::Collective || self.left < self.entered;
            return (request.is_none() && is_entered).then(|| {
                self.left += 1;
                self.left - 1
            });
        };
        let index = match request {
            Some(request) => outstanding.requests.remove(&request),
            None => outstanding.blocking.pop_front(),
        }?;
        outstanding.left[(index - self.left) as usize] = true;
        while outstanding.left.front() == Some(&true) {
            outstanding.left.pop_front();
            self.left += 1;
        }
        if outstanding.left.len() == outstanding.blocking.len() {
            self.outstanding = None;
        }
        Some(index)
    }
}
