//! Order of the receives of a process: that of their posts, not that of their completions.

use std::collections::BTreeMap;

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

/// Receives of a process, which leave in the order in which they were posted.
#[derive(Debug)]
pub(super) struct PostOrder<T> {
    /// Number of receives that were posted, blocking ones included.
    count: u64,
    /// Posted receives by request: their numbers, and the enters of the calls.
    requests: FxHashMap<u64, (u64, Option<Timestamp<Global>>)>,
    /// Receives by number: those that are not complete, and those that wait for them.
    receives: BTreeMap<u64, Option<T>>,
    /// Number of complete receives among them.
    complete: usize,
    /// Maximum of this number; then they do not wait.
    most: usize,
}

impl<T> PostOrder<T> {
    /// Creates the state before the first receive. If `most` complete receives wait for
    /// one that was posted before them, they do not wait any longer.
    pub(super) fn new(most: usize) -> Self {
        Self {
            count: 0,
            requests: FxHashMap::default(),
            receives: BTreeMap::new(),
            complete: 0,
            most,
        }
    }

    /// Adds a receive that is posted in a call with this enter.
    pub(super) fn post(&mut self, request: u64, enter: Option<Timestamp<Global>>) {
        if let Some((replaced, _)) = self.requests.insert(request, (self.count, enter)) {
            self.receives.remove(&replaced);
        }
        self.receives.insert(self.count, None);
        self.count += 1;
    }

    /// Returns the enter of the call that posted a receive.
    pub(super) fn enter_of(&self, request: u64) -> Option<Timestamp<Global>> {
        self.requests.get(&request).and_then(|(_, enter)| *enter)
    }

    /// Removes a post. Returns receives that waited for it.
    pub(super) fn cancel(&mut self, request: u64) -> Vec<T> {
        if let Some((number, _)) = self.requests.remove(&request) {
            self.receives.remove(&number);
        }
        self.released()
    }

    /// Takes a receive that is complete. Returns all that are next in the order.
    pub(super) fn complete(&mut self, request: Option<u64>, receive: T) -> Vec<T> {
        let post = request.and_then(|request| self.requests.remove(&request));
        let number = post.map_or(self.count, |(number, _)| number);
        self.count += u64::from(post.is_none());
        self.receives.insert(number, Some(receive));
        self.complete += 1;
        match self.complete < self.most {
            true => self.released(),
            false => self.all_complete(),
        }
    }

    /// Returns the receives that wait for others, in their order.
    pub(super) fn finish(mut self) -> Vec<T> {
        self.all_complete()
    }

    /// Returns true if no receive is posted or waits.
    pub(super) fn is_empty(&self) -> bool {
        self.receives.is_empty()
    }

    /// Takes the complete receives before the first one that is not complete.
    fn released(&mut self) -> Vec<T> {
        let mut released = vec![];
        while let Some(first) = self.receives.first_entry()
            && first.get().is_some()
        {
            released.extend(first.remove());
        }
        self.complete -= released.len();
        released
    }

    /// Takes all complete receives.
    fn all_complete(&mut self) -> Vec<T> {
        let all = std::mem::take(&mut self.receives);
        let mut released = vec![];
        for (number, receive) in all {
            match receive {
                Some(receive) => released.push(receive),
                None => drop(self.receives.insert(number, None)),
            }
        }
        self.complete = 0;
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 4_096;

    #[test]
    fn receives_leave_in_the_order_of_their_posts() {
        let mut order = PostOrder::new(LONGEST);
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
        let mut order = PostOrder::new(LONGEST);
        order.post(1, None);
        let released: usize = (0..3 * LONGEST)
            .map(|one| order.complete(None, one).len())
            .sum();
        assert!(released >= 2 * LONGEST, "{released}");
    }
}
