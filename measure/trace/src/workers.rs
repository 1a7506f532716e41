//! Worker threads that share the locations of a trace and pass work to each other.

use std::collections::VecDeque;
use std::ops::Range;
// Loom does not run the threads of `share`.
use std::sync::Mutex as StandardMutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;

use super::Trace;
use super::primitives::{AtomicBool, AtomicUsize, Mutex, MutexGuard};
use downbeat_sync::internal::Sleeper;

/// Splits the locations into contiguous groups with similar numbers of events, one for each worker;
/// fewer if there are fewer locations.
pub(super) fn groups(trace: &Trace, workers: usize) -> Vec<Range<usize>> {
    let events: Vec<u64> = trace
        .locations
        .iter()
        .map(|location| location.times.len() as u64)
        .collect();
    balanced(&events, workers)
}

/// Splits anything into contiguous groups, given the number of events of each item.
pub(super) fn balanced(events: &[u64], workers: usize) -> Vec<Range<usize>> {
    let locations = events.len();
    let workers = workers.clamp(1, locations.max(1));
    let (all, mut before, mut start) = (events.iter().sum::<u64>(), 0, 0);
    let mut groups = Vec::with_capacity(workers);
    for worker in 0..workers {
        let (share, rest) = (
            all * (worker as u64 + 1) / workers as u64,
            workers - worker - 1,
        );
        let mut end = start;
        // Every group gets at least one location, and the last one gets the rest.
        while end < locations - rest && (end == start || rest == 0 || before < share) {
            before += events[end];
            end += 1;
        }
        groups.push(start..end);
        start = end;
    }
    groups
}

/// Distributes one item for each location to the workers.
pub(super) fn deal<T>(all: Vec<T>, groups: &[Range<usize>]) -> Vec<Vec<T>> {
    let mut all = all.into_iter();
    groups
        .iter()
        .map(|group| all.by_ref().take(group.len()).collect())
        .collect()
}

/// Runs every worker's part, the first on the calling thread, and returns their results in order.
/// Parts for which the system gives no thread are run on the calling thread, too.
pub(super) fn share<T: Send, R: Send>(
    parts: Vec<T>,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    let part = |part| StandardMutex::new(Some(part));
    let parts: Vec<_> = parts.into_iter().map(part).collect();
    let run = |worker: usize| {
        let part = parts[worker]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        part.map(|part| work(worker, part))
    };
    let run = &run;
    let results = thread::scope(|scope| {
        let start = |worker| {
            thread::Builder::new()
                .spawn_scoped(scope, move || run(worker))
                .ok()
        };
        let others: Vec<_> = (1..parts.len()).map(start).collect();
        let mut results: Vec<Option<R>> = (0..parts.len().min(1)).map(run).collect();
        for (worker, other) in (1..).zip(others) {
            results.push(match other.map(thread::ScopedJoinHandle::join) {
                Some(Ok(result)) => result,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => run(worker),
            });
        }
        results
    });
    results.into_iter().flatten().collect()
}

/// Passes work from busy workers to idle ones, and tells the first worker when all of them wait.
#[derive(Debug)]
pub(super) struct Post {
    /// Mailboxes of all workers.
    boxes: Vec<WorkBox>,
    /// Number of idle workers.
    idle: AtomicUsize,
    /// Number of locations that run or are runnable. At zero, only other ranks can wake locations.
    awake: AtomicUsize,
    /// True after the first worker ended the work, or a worker panicked.
    is_over: AtomicBool,
}

/// Work that was passed to one worker.
#[derive(Debug, Default)]
struct WorkBox {
    /// True while the worker waits for work.
    idle: AtomicBool,
    full: AtomicBool,
    left: Mutex<Vec<u32>>,
    owner: Sleeper,
}

/// Guard of a running worker. If the worker panics, the others end instead of waiting for it.
#[derive(Debug)]
pub(super) struct Attendance<'a> {
    post: &'a Post,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.post.end();
        }
    }
}

impl Post {
    /// Returns a post for this number of workers, with `awake` locations to replay.
    pub(super) fn new(workers: usize, awake: usize) -> Self {
        let boxes = (0..workers).map(|_| WorkBox::default()).collect();
        let [idle, awake] = [0, awake].map(AtomicUsize::new);
        Self {
            boxes,
            idle,
            awake,
            is_over: AtomicBool::new(false),
        }
    }

    /// Registers the calling thread as a worker.
    pub(super) fn attend(&self) -> Attendance<'_> {
        Attendance { post: self }
    }

    /// Ends all waiting.
    pub(super) fn end(&self) {
        // Whoever sees the flag sees what all locations did before it.
        self.is_over.store(true, Ordering::Release);
        self.boxes.iter().for_each(|mailbox| mailbox.owner.wake());
    }

    /// Counts a location as awake. Must be called before the caller can go to sleep itself because
    /// of it.
    #[inline]
    pub(super) fn rouse(&self) {
        self.awake.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a location as asleep or complete.
    #[inline]
    pub(super) fn rest(&self) {
        if self.awake.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.boxes[0].owner.wake();
        }
    }

    /// Returns true if a worker is idle.
    #[inline]
    pub(super) fn has_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
    }

    /// Passes the later half of `ready`, which are awake locations, to an idle worker.
    pub(super) fn leave_half(&self, ready: &mut VecDeque<u32>) {
        // The thread that clears the flag owns the mailbox.
        let Some(mailbox) = self
            .boxes
            .iter()
            .find(|mailbox| mailbox.idle.swap(false, Ordering::AcqRel))
        else {
            return;
        };
        self.idle.fetch_sub(1, Ordering::Relaxed);
        let half = ready.len() / 2;
        mailbox.lock().extend(ready.drain(half..));
        mailbox.full.store(true, Ordering::Release);
        mailbox.owner.wake();
    }

    /// Waits for work from others, and puts it into `ready`. Returns false if the work is over; on
    /// the first worker, also if all locations wait.
    pub(super) fn receive(&self, worker: usize, ready: &mut VecDeque<u32>) -> bool {
        let mailbox = &self.boxes[worker];
        self.idle.fetch_add(1, Ordering::Relaxed);
        mailbox.idle.store(true, Ordering::Release);
        mailbox.owner.wait_until(|| {
            if mailbox.full.load(Ordering::Acquire) {
                // No other worker fills it before this one is idle again.
                mailbox.full.store(false, Ordering::Relaxed);
                ready.extend(mailbox.lock().drain(..));
                return Some(true);
            }
            let all_wait = worker == 0 && self.awake.load(Ordering::Acquire) == 0;
            if !all_wait && !self.is_over.load(Ordering::Acquire) {
                return None;
            }
            // Nobody passes work on any more.
            if mailbox.idle.swap(false, Ordering::Relaxed) {
                self.idle.fetch_sub(1, Ordering::Relaxed);
            }
            Some(false)
        })
    }
}

impl WorkBox {
    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        // No code panics while holding this lock, so it is never poisoned.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Matching, Place, TraceBuilder};
    use downbeat_clock_core::Timestamp;

    fn of(events: &[usize], workers: usize) -> Vec<(usize, usize)> {
        let mut builder = TraceBuilder::new(Matching::default());
        for count in events {
            let location = builder
                .add_location(Place {
                    node: 0,
                    process: 0,
                })
                .unwrap();
            (0..*count).for_each(|_| {
                builder
                    .push(location, Timestamp::ORIGIN, Action::Internal)
                    .unwrap();
            });
        }
        let groups = groups(&builder.finish().unwrap(), workers);
        groups
            .into_iter()
            .map(|group| (group.start, group.end))
            .collect()
    }

    #[test]
    fn workers_have_similar_numbers_of_events() {
        assert_eq!(of(&[5, 5, 5, 5], 2), [(0, 2), (2, 4)]);
        assert_eq!(of(&[15, 1, 1, 1], 2), [(0, 1), (1, 4)]);
        assert_eq!(of(&[0, 0, 0], 3), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(of(&[1, 1, 30], 2), [(0, 2), (2, 3)]);
        assert_eq!(of(&[7], 4), [(0, 1)]);
        assert_eq!(of(&[], 4), [(0, 0)]);
        assert_eq!(of(&[3, 3], 0), [(0, 2)]);
    }

    #[test]
    fn shared_work_returns_results_in_order() {
        let groups = [0..2, 2..2, 2..5];
        let parts = deal(vec![1, 2, 3, 4, 5], &groups);
        assert_eq!(parts, [vec![1, 2], vec![], vec![3, 4, 5]]);
        let sums = share(parts, |worker, part| {
            worker as u32 * 100 + part.iter().sum::<u32>()
        });
        assert_eq!(sums, [3, 100, 212]);
    }

    #[test]
    fn workers_that_wait_for_a_panicked_one_end() {
        let post = Post::new(2, 1);
        let work = |worker, ()| {
            let _attendance = post.attend();
            assert_ne!(worker, 0, "the first worker panics");
            post.receive(worker, &mut VecDeque::new())
        };
        assert!(std::panic::catch_unwind(|| share(vec![(), ()], work)).is_err());
    }
}
