//! Waiting for another thread, which may run on the same or another core.

use std::sync::PoisonError;

#[cfg(downbeat_loom)]
use loom::{
    sync::atomic::{AtomicBool, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{self, Thread},
};

#[cfg(not(downbeat_loom))]
use std::{
    hint,
    sync::atomic::{AtomicBool, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{self, Thread},
    time::Duration,
};

/// Number of attempts that follow each other at once: some microseconds, several times the round
/// trip to a distant core. With fewer, threads that run in parallel yield too early, which costs
/// milliseconds where another thread keeps the core busy. With more, threads that share a core
/// delay each other.
#[cfg(not(downbeat_loom))]
const SPINS: u32 = 200;

/// Number of further attempts, each after a yield to other threads, one of which may be the one
/// that is waited for.
#[cfg(not(downbeat_loom))]
const YIELDS: u32 = 100;

/// Maximum time that a thread sleeps, which is the cost of a missed nudge.
#[cfg(not(downbeat_loom))]
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// Place where one thread waits for others, which [`nudge`](Self::nudge) or [`wake`](Self::wake)
/// it.
///
/// `nudge` follows every message, so it must be cheap: one load and no fence. That load may
/// overtake the store that the sleeper waits for, and then miss a thread that is just going to
/// sleep. This is rare, and limited by the sleep time of a millisecond. `wake` never misses.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use downbeat_sync::internal::Sleeper;
///
/// let (sleeper, answer) = (Sleeper::new(), AtomicU64::new(0));
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         answer.store(42, Ordering::Release);
///         sleeper.nudge();
///     });
///     let found = sleeper.wait_until(|| Some(answer.load(Ordering::Acquire)).filter(|answer| *answer > 0));
///     assert_eq!(found, 42);
/// });
/// ```
#[derive(Debug)]
#[repr(align(64))]
pub struct Sleeper {
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Sleeper {
    /// Creates a place where no thread sleeps.
    pub fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Repeats the attempt until it returns a value: at once at first, then with yields in between,
    /// as the other threads may share the core with this one, and then with sleeps. For one thread
    /// at a time.
    #[cold]
    pub fn wait_until<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        if let Some(done) = spin_and_yield(&mut attempt) {
            return done;
        }
        loop {
            *self.lock() = Some(thread::current());
            self.asleep.store(true, Ordering::Relaxed);
            // Only after the registration: writes of a waker that did not see it are visible here.
            let done = attempt();
            if done.is_none() {
                sleep();
            }
            self.asleep.store(false, Ordering::Relaxed);
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Wakes the thread if it is seen to be asleep.
    #[inline]
    pub fn nudge(&self) {
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Wakes the thread, which then sees all previous writes of the caller.
    ///
    /// The lock ensures that: either the sleeper had it first, and is found here; or it acquires it
    /// after this thread, and with it all previous writes of this thread, in time for its last
    /// attempt.
    #[cold]
    pub fn wake(&self) {
        let thread = self.lock().take();
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Thread>> {
        // No code panics under the lock; and the state would still be valid.
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Sleeper {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(downbeat_loom))]
fn spin_and_yield<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for pause in 0..SPINS + YIELDS {
        let done = attempt();
        if done.is_some() {
            return done;
        }
        if pause < SPINS {
            hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
    None
}

#[cfg(not(downbeat_loom))]
fn sleep() {
    thread::park_timeout(MAX_SLEEP);
}

/// Loom checks the hard part: sleeping at once.
#[cfg(downbeat_loom)]
fn spin_and_yield<T>(_: impl FnMut() -> Option<T>) -> Option<T> {
    None
}

/// Sleeps forever unless another thread wakes this one.
#[cfg(downbeat_loom)]
fn sleep() {
    thread::park();
}
