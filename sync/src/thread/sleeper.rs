//! Waiting for another thread, which may run on another core, or wait for this one.

use std::sync::PoisonError;

#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicBool, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{self, Thread},
};

#[cfg(not(loom))]
use std::{
    hint,
    sync::atomic::{AtomicBool, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{self, Thread},
    time::Duration,
};

/// Looks so often at once: for some microseconds, several times as long as an answer takes from a distant core. Less, and
/// threads that run side by side lose each other: to let others by costs milliseconds where one of them keeps the core
/// busy. More, and threads that share a core hold each other up.
#[cfg(not(loom))]
const SPINS: u32 = 200;

/// After that, so often with other threads let by in between: each of them may be the one that is waited for.
#[cfg(not(loom))]
const YIELDS: u32 = 100;

/// How long a thread sleeps at most: what a nudge that missed costs.
#[cfg(not(loom))]
const NAP: Duration = Duration::from_millis(1);

/// Where one thread waits for others, which may [`nudge`](Self::nudge) or [`wake`](Self::wake) it.
///
/// `nudge` comes after every message, so it must cost next to nothing: one load, and no fence. That load may overtake
/// the store that the sleeper waits for, and then miss a thread that is just lying down. This is rare, and mended by
/// the sleeper, who looks up after a nap of a millisecond. `wake` never misses.
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
    /// A place where nobody sleeps.
    pub fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    /// Tries until something comes of it: at once at first, then with other threads let by, as they may have to share
    /// the core with this one, and then asleep in between. For one thread at a time.
    #[cold]
    pub fn wait_until<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        if let Some(done) = stay_awake(&mut attempt) {
            return done;
        }
        loop {
            *self.lock() = Some(thread::current());
            self.asleep.store(true, Ordering::Relaxed);
            // Only now: what a waker did before it could see who sleeps here is seen here.
            let done = attempt();
            if done.is_none() {
                nap();
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

    /// Wakes the thread, which then sees what the caller did before.
    ///
    /// The lock makes it so: either the sleeper had it first, and is found here; or it gets it after this thread, and
    /// with it everything that this thread did before, in time for its last attempt.
    #[cold]
    pub fn wake(&self) {
        let thread = self.lock().take();
        if let Some(thread) = thread {
            thread.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Thread>> {
        // Nothing panics under the lock; and if it did, the place would be as good as before.
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Sleeper {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
fn stay_awake<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    for pause in 0..SPINS + YIELDS {
        let done = attempt();
        if done.is_some() {
            return done;
        }
        if pause < SPINS {
            hint::spin_loop()
        } else {
            thread::yield_now()
        }
    }
    None
}

#[cfg(not(loom))]
fn nap() {
    thread::park_timeout(NAP);
}

/// Loom looks at the hard part: to lie down at once,
#[cfg(loom)]
fn stay_awake<T>(_: impl FnMut() -> Option<T>) -> Option<T> {
    None
}

/// and to sleep for ever if nobody comes.
#[cfg(loom)]
fn nap() {
    thread::park();
}
