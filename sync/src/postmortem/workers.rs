//! Threads that share the locations of a trace among them, and how they hand each other work.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use super::Trace;

/// Neighbouring locations for each worker, so that all have about as many events; fewer workers, if there are fewer
/// locations.
pub(super) fn groups(trace: &Trace, workers: usize) -> Vec<Range<usize>> {
    let locations = trace.locations.len();
    let workers = workers.clamp(1, locations.max(1));
    let (all, mut before, mut start) = (trace.events(), 0, 0);
    let mut groups = Vec::with_capacity(workers);
    for worker in 0..workers {
        let (share, rest) = (all * (worker as u64 + 1) / workers as u64, workers - worker - 1);
        let mut end = start;
        // Everyone has one, and the last has what is left.
        while end < locations - rest && (end == start || rest == 0 || before < share) {
            before += trace.locations[end].times.len() as u64;
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
    groups.iter().map(|group| all.by_ref().take(group.len()).collect()).collect()
}

/// Has every worker do its part, the calling thread the first one. What they return, in order.
pub(super) fn share<T: Send, R: Send>(parts: Vec<T>, work: impl Fn(usize, T) -> R + Sync) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let mut parts = parts.into_iter().enumerate();
        let first = parts.next();
        let others: Vec<_> = parts.map(|(worker, part)| scope.spawn(move || work(worker, part))).collect();
        let mut results: Vec<R> = first.map(|(worker, part)| work(worker, part)).into_iter().collect();
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}

/// Where workers wake each other's locations, and learn that there is nothing left to wake.
#[derive(Debug)]
pub(super) struct Post {
    /// Of all workers.
    boxes: Vec<Mailbox>,
    /// How many locations run, or could. With none, nobody will ever wake another one.
    awake: AtomicUsize,
}

/// Locations of one worker that others woke.
#[derive(Debug, Default)]
struct Mailbox {
    full: AtomicBool,
    woken: Mutex<Vec<u32>>,
    owner: OnceLock<Thread>,
}

/// A worker looks for mail so often before it sleeps.
const LOOKS: u32 = 200;

impl Post {
    /// With so many locations awake.
    pub(super) fn new(workers: usize, awake: usize) -> Self {
        Self { boxes: (0..workers).map(|_| Mailbox::default()).collect(), awake: AtomicUsize::new(awake) }
    }

    /// The calling thread is this worker.
    pub(super) fn sign_on(&self, worker: usize) {
        // There is one worker of each number, so it is the first to say so.
        let _ = self.boxes[worker].owner.set(thread::current());
        // Whoever is the last to rest after this knows whom to tell; if it was before this, the worker sees that.
        self.awake.fetch_add(0, Ordering::AcqRel);
    }

    /// A location that slept can go on. To be called before anything that makes the caller sleep.
    #[inline]
    pub(super) fn rouse(&self) {
        self.awake.fetch_add(1, Ordering::AcqRel);
    }

    /// Tells another worker of its location, which is awake.
    pub(super) fn send(&self, worker: usize, location: u32) {
        let mailbox = &self.boxes[worker];
        mailbox.lock().push(location);
        // In one order with the owner's look: either it sees the mail, or this sees whom to tell.
        mailbox.full.swap(true, Ordering::AcqRel);
        if let Some(owner) = mailbox.owner.get() {
            owner.unpark();
        }
    }

    /// A location sleeps, or has come to its end.
    pub(super) fn rest(&self) {
        if self.awake.fetch_sub(1, Ordering::AcqRel) == 1 {
            for owner in self.boxes.iter().filter_map(|mailbox| mailbox.owner.get()) {
                owner.unpark();
            }
        }
    }

    /// Adds the mail of a worker that has nothing to do to `ready`, and waits for some. Whether there is more to do.
    pub(super) fn receive(&self, worker: usize, ready: &mut Vec<u32>) -> bool {
        let mailbox = &self.boxes[worker];
        let mut looks = 0;
        loop {
            if mailbox.full.swap(false, Ordering::AcqRel) {
                ready.append(&mut mailbox.lock());
            }
            if !ready.is_empty() {
                return true;
            }
            if self.awake.load(Ordering::Acquire) == 0 {
                return false;
            }
            looks += 1;
            match looks {
                0..LOOKS => std::hint::spin_loop(),
                // One who was told meanwhile does not sleep.
                _ => thread::park(),
            }
        }
    }
}

impl Mailbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // Nobody panics with it, so it is never poisoned.
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
