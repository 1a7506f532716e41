//! Threads that share the locations of a trace among them, and how they hand each other work.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;

use super::Trace;
use super::primitives::{AtomicBool, AtomicUsize, Mutex, MutexGuard};
use downbeat_sync::internal::Sleeper;

/// Neighbouring locations for each worker, so that all have about as many events; fewer workers, if there are fewer
/// locations.
pub(super) fn groups(trace: &Trace, workers: usize) -> Vec<Range<usize>> {
    let events: Vec<u64> = trace
        .locations
        .iter()
        .map(|location| location.times.len() as u64)
        .collect();
    balanced(&events, workers)
}

/// The same of anything with so many events.
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
        // Everyone has one, and the last has what is left.
        while end < locations - rest && (end == start || rest == 0 || before < share) {
            before += events[end];
            end += 1;
        }
        groups.push(start..end);
        start = end;
    }
    groups
}

/// Splits what there is one of for each location into what each worker has.
pub(super) fn deal<T>(all: Vec<T>, groups: &[Range<usize>]) -> Vec<Vec<T>> {
    let mut all = all.into_iter();
    groups
        .iter()
        .map(|group| all.by_ref().take(group.len()).collect())
        .collect()
}

/// Has every worker do its part, the calling thread the first one. What they return, in order.
pub(super) fn share<T: Send, R: Send>(
    parts: Vec<T>,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let mut parts = parts.into_iter().enumerate();
        let first = parts.next();
        let others: Vec<_> = parts
            .map(|(worker, part)| scope.spawn(move || work(worker, part)))
            .collect();
        let mut results: Vec<R> = first
            .map(|(worker, part)| work(worker, part))
            .into_iter()
            .collect();
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// Where workers who have enough to do leave some of it to others, and learn that there is nothing left for anyone.
#[derive(Debug)]
pub(super) struct Post {
    /// Of all workers.
    boxes: Vec<Mailbox>,
    /// How many workers have nothing to do.
    idle: AtomicUsize,
    /// How many locations run, or could. With none, nobody will ever wake another one.
    awake: AtomicUsize,
    /// Somebody panicked, and what he had to do is never done.
    abandoned: AtomicBool,
}

/// What one worker was left.
#[derive(Debug, Default)]
struct Mailbox {
    /// Whether it waits for something.
    idle: AtomicBool,
    full: AtomicBool,
    left: Mutex<Vec<u32>>,
    owner: Sleeper,
}

/// A worker at work. If it panics, the others end, too, rather than wait for it.
#[derive(Debug)]
pub(super) struct Attendance<'a> {
    post: &'a Post,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.post.abandon();
        }
    }
}

impl Post {
    /// With so many locations awake.
    pub(super) fn new(workers: usize, awake: usize) -> Self {
        let boxes = (0..workers).map(|_| Mailbox::default()).collect();
        let [idle, awake] = [0, awake].map(AtomicUsize::new);
        Self {
            boxes,
            idle,
            awake,
            abandoned: AtomicBool::new(false),
        }
    }

    /// The calling thread is a worker.
    pub(super) fn attend(&self) -> Attendance<'_> {
        Attendance { post: self }
    }

    /// Nobody waits for anything any more.
    pub(super) fn abandon(&self) {
        // Who sleeps sees it when it is woken.
        self.abandoned.store(true, Ordering::Relaxed);
        self.wake_all();
    }

    #[cold]
    fn wake_all(&self) {
        self.boxes.iter().for_each(|mailbox| mailbox.owner.wake());
    }

    /// A location that slept can go on. To be called before what made it so can make the caller sleep.
    #[inline]
    pub(super) fn rouse(&self) {
        self.awake.fetch_add(1, Ordering::AcqRel);
    }

    /// A location sleeps, or has come to its end.
    #[inline]
    pub(super) fn rest(&self) {
        if self.awake.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_all();
        }
    }

    /// Whether there is somebody to leave work to.
    #[inline]
    pub(super) fn has_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
    }

    /// Leaves the later half of some locations, which are awake, to a worker with nothing to do.
    pub(super) fn leave_half(&self, ready: &mut VecDeque<u32>) {
        // Whoever makes it busy has it to himself.
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

    /// Waits for work of others. Whether there is any left, which is then `ready`.
    pub(super) fn receive(&self, worker: usize, ready: &mut VecDeque<u32>) -> bool {
        let mailbox = &self.boxes[worker];
        self.idle.fetch_add(1, Ordering::Relaxed);
        mailbox.idle.store(true, Ordering::Release);
        mailbox.owner.wait_until(|| {
            if mailbox.full.load(Ordering::Acquire) {
                // Nobody fills it before this worker is idle again.
                mailbox.full.store(false, Ordering::Relaxed);
                ready.extend(mailbox.lock().drain(..));
                return Some(true);
            }
            let is_over =
                self.awake.load(Ordering::Acquire) == 0 || self.abandoned.load(Ordering::Relaxed);
            is_over.then_some(false)
        })
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        // Nobody panics with it, so it is never poisoned.
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
    fn workers_have_about_as_many_events() {
        assert_eq!(of(&[5, 5, 5, 5], 2), [(0, 2), (2, 4)]);
        assert_eq!(of(&[15, 1, 1, 1], 2), [(0, 1), (1, 4)]);
        assert_eq!(of(&[0, 0, 0], 3), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(of(&[1, 1, 30], 2), [(0, 2), (2, 3)]);
        assert_eq!(of(&[7], 4), [(0, 1)]);
        assert_eq!(of(&[], 4), [(0, 0)]);
        assert_eq!(of(&[3, 3], 0), [(0, 2)]);
    }

    #[test]
    fn what_is_dealt_and_shared_comes_back_in_order() {
        let groups = [0..2, 2..2, 2..5];
        let parts = deal(vec![1, 2, 3, 4, 5], &groups);
        assert_eq!(parts, [vec![1, 2], vec![], vec![3, 4, 5]]);
        let sums = share(parts, |worker, part| {
            worker as u32 * 100 + part.iter().sum::<u32>()
        });
        assert_eq!(sums, [3, 100, 212]);
    }

    #[test]
    fn who_waits_for_one_that_panics_comes_to_an_end() {
        let post = Post::new(2, 1);
        let work = |worker, ()| {
            let _attendance = post.attend();
            assert_ne!(worker, 0, "the first worker panics");
            post.receive(worker, &mut VecDeque::new())
        };
        assert!(std::panic::catch_unwind(|| share(vec![(), ()], work)).is_err());
    }
}
