//! Order of the receives of a process: that of their posts, not that of their completions.

use std::collections::BTreeSet;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

/// Maximum number of complete receives that wait for one which was posted before them; then they do not wait.
const LONGEST: usize = 4_096;

/// Receives of a process, which leave in the order in which they were posted.
#[derive(Debug)]
pub(super) struct PostOrder<T> {
    /// Number of receives that were posted, blocking ones included.
    count: u64,
    /// Posted receives by request: their numbers, and the enters of the calls.
    requests: FxHashMap<u64, (u64, Option<Timestamp<Global>>)>,
    open: BTreeSet<u64>,
    /// Complete receives after an open one, and the lowest of their numbers.
    complete: Vec<(u64, T)>,
    lowest: u64,
}

impl<T> Default for PostOrder<T> {
    fn default() -> Self {
        Self {
            count: 0,
            requests: FxHashMap::default(),
            open: BTreeSet::new(),
            complete: vec![],
            lowest: u64::MAX,
        }
    }
}

impl<T> PostOrder<T> {
    /// Adds a receive that is posted in a call with this enter.
    pub(super) fn post(&mut self, request: u64, enter: Option<Timestamp<Global>>) {
        if let Some((replaced, _)) = self.requests.insert(request, (self.count, enter)) {
            self.open.remove(&replaced);
        }
        self.open.insert(self.count);
        self.count += 1;
    }

    /// Returns the enter of the call that posted a receive.
    pub(super) fn enter_of(&self, request: u64) -> Option<Timestamp<Global>> {
        self.requests.get(&request).and_then(|(_, enter)| *enter)
    }

    /// Removes a post. Returns receives that waited for it.
    pub(super) fn cancel(&mut self, request: u64) -> Vec<T> {
        if let Some((number, _)) = self.requests.remove(&request) {
            self.open.remove(&number);
        }
        self.released()
    }

    /// Takes a receive that is complete. Returns all that are next in the order.
    pub(super) fn complete(&mut self, request: Option<u64>, receive: T) -> Vec<T> {
        let post = request.and_then(|request| self.requests.remove(&request));
        let number = post.map(|(number, _)| number);
        let number = number.unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.open.remove(&number);
        self.complete.push((number, receive));
        self.lowest = self.lowest.min(number);
        self.released()
    }

    /// Returns the receives that wait for others, in their order.
    pub(super) fn finish(mut self) -> Vec<T> {
        self.open.clear();
        self.released()
    }

    /// Returns true if no receive is posted or waits.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.complete.is_empty()
    }

    fn released(&mut self) -> Vec<T> {
        let first_open = match self.open.first() {
            Some(first) if self.complete.len() < LONGEST => *first,
            _ => u64::MAX,
        };
        if self.lowest > first_open || self.complete.is_empty() {
            return vec![];
        }
        self.complete.sort_unstable_by_key(|(number, _)| *number);
        let released = self
            .complete
            .partition_point(|(number, _)| *number < first_open);
        let next = self.complete.get(released);
        self.lowest = next.map_or(u64::MAX, |(number, _)| *number);
        let released = self.complete.drain(..released);
        released.map(|(_, receive)| receive).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receives_leave_in_the_order_of_their_posts() {
        let mut order = PostOrder::default();
        order.post(7, None);
        order.post(8, Some(Timestamp::ORIGIN));
        order.post(9, None);
        assert_eq!(
            [7, 8].map(|id| order.enter_of(id)),
            [None, Some(Timestamp::ORIGIN)]
        );
        assert_eq!(order.complete(Some(8), 'b'), []);
        assert_eq!(order.complete(None, 'd'), []);
        assert_eq!(order.complete(Some(7), 'a'), ['a', 'b']);
        assert_eq!(order.cancel(9), ['d']);
        assert!(order.is_empty());
        assert_eq!(order.complete(Some(1), 'e'), ['e'], "without a post");
    }

    #[test]
    fn a_receive_that_is_never_complete_does_not_hold_all_others() {
        let mut order = PostOrder::default();
        order.post(1, None);
        let released: usize = (0..3 * LONGEST)
            .map(|one| order.complete(None, one).len())
            .sum();
        assert!(released >= 2 * LONGEST, "{released}");
    }
}
