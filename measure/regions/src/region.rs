//! Regions, and the lookup of the timer of the current thread.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use downbeat_clock_core::region::TimerMisuse;

use super::call_path::Innermost;
use super::registry::{self, ThreadTimer, TimerTable};

/// A timed region of a program, with one timer in each thread.
///
/// Regions with the same name are one region; see the [crate documentation](crate) for names. Using
/// a region takes no lock, except for the first time in each thread.
///
/// ```
/// use downbeat_regions::Region;
///
/// static HALO: Region = Region::new("halo exchange");
///
/// for _ in 0..3 {
///     HALO.start();
///     HALO.stop();
/// }
/// let profile = downbeat_regions::profile();
/// assert_eq!(profile.region("halo exchange").map(|found| found.events), Some(3));
/// ```
#[derive(Debug)]
pub struct Region {
    name: &'static str,
    /// Number in the registry; `usize::MAX` if it is not registered yet.
    number: AtomicUsize,
}

/// State of a thread that uses regions.
struct ThisThread {
    timers: Cell<TimerTable>,
    /// True if call paths are recorded.
    is_nested: Cell<bool>,
    innermost: Innermost,
}

thread_local! {
    // Without a destructor, which would need a check on every access.
    static THIS: ThisThread = const {
        ThisThread {
            timers: Cell::new(&[]),
            is_nested: Cell::new(false),
            innermost: Cell::new(None),
        }
    };
}

impl Region {
    /// Makes a region with this name; registers it on first use.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            number: AtomicUsize::new(usize::MAX),
        }
    }

    /// Makes a region whose name is known only at run-time. The name is leaked, once per name.
    pub fn named(name: &str) -> Self {
        let (name, number) = registry::lock().number(name);
        Self {
            name,
            number: AtomicUsize::new(number),
        }
    }

    /// Begins an event that ends when the guard is dropped.
    ///
    /// A region that is entered again in the same thread, as by recursion, ends when all guards are
    /// dropped: this is one event.
    #[inline]
    pub fn enter(&self) -> RegionGuard {
        RegionGuard {
            timer: self.open(),
            not_send: PhantomData,
        }
    }

    /// Does what [`enter`](Self::enter) does, without a guard.
    #[inline(always)]
    pub(super) fn open(&self) -> &'static ThreadTimer {
        THIS.with(|thread| {
            let timer = self.timer(thread);
            timer.descend(thread);
            timer.timer.open();
            timer
        })
    }

    /// Begins an event. If the region is running already, the event continues, and the misuse is
    /// counted for the report.
    #[inline]
    pub fn start(&self) {
        THIS.with(|thread| {
            let timer = self.timer(thread);
            timer.descend(thread);
            // The timer counts misuse.
            let _ = timer.timer.start();
        });
    }

    /// Ends the event that this thread began. If there is none, the misuse is counted for the
    /// report.
    #[inline]
    pub fn stop(&self) {
        THIS.with(|thread| {
            let timer = self.timer(thread);
            timer.ascend(timer.timer.stop().map(Some), thread);
        });
    }

    /// Ends what [`open`](Self::open) began in this thread.
    #[cfg(feature = "tracing")]
    pub(super) fn leave(&self) {
        THIS.with(|thread| self.timer(thread).close(thread));
    }

    /// The name as given.
    pub fn name(&self) -> &str {
        self.name
    }

    #[inline(always)]
    fn timer(&self, thread: &ThisThread) -> &'static ThreadTimer {
        // The table belongs to this thread: a number without a timer needs the registry.
        match thread
            .timers
            .get()
            .get(self.number.load(Ordering::Relaxed))
            .and_then(OnceLock::get)
        {
            Some(timer) => timer,
            None => self.find_timer(thread),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_timer(&self, thread: &ThisThread) -> &'static ThreadTimer {
        let mut registry = registry::lock();
        let mut number = self.number.load(Ordering::Relaxed);
        if number == usize::MAX {
            (_, number) = registry.number(self.name);
            self.number.store(number, Ordering::Relaxed);
        }
        let (timers, timer) = registry.timer(thread.timers.get(), number, thread.innermost.get());
        thread.timers.set(timers);
        thread.is_nested.set(registry.is_nested());
        drop(registry);
        // While the thread is exiting, this fails, and its timers are kept.
        let _ = LEAVING.try_with(|_| ());
        timer
    }
}

impl ThreadTimer {
    /// Ends an event, if this guard is the outermost one.
    #[inline(always)]
    fn close(&'static self, thread: &ThisThread) {
        let ended = self.timer.close();
        self.ascend(ended, thread);
    }

    /// Makes this region the innermost one, unless it is running already.
    #[inline(always)]
    fn descend(&'static self, thread: &ThisThread) {
        if thread.is_nested.get() && !self.timer.is_running() {
            self.path.enter(&thread.innermost);
        }
    }

    /// Leaves this region, if the call ended it.
    #[inline(always)]
    fn ascend(&'static self, ended: Result<Option<u64>, TimerMisuse>, thread: &ThisThread) {
        if !thread.is_nested.get() {
            return;
        }
        let length = match ended {
            Ok(Some(length)) => Some(length),
            // It has ended, but without an event.
            Err(TimerMisuse::ClockRanBackwards) => None,
            _ => return,
        };
        self.path.leave(length, &thread.innermost);
    }
}

/// A running event of a region; it ends when the guard is dropped, also by a panic.
#[derive(Debug)]
#[must_use = "the region ends at once if its guard is not kept: `let _guard = ...`"]
pub struct RegionGuard {
    timer: &'static ThreadTimer,
    /// Keeps the guard in the thread of its timer.
    not_send: PhantomData<*const ()>,
}

impl Drop for RegionGuard {
    #[inline]
    fn drop(&mut self) {
        THIS.with(|thread| self.timer.close(thread));
    }
}

/// Timers of the current thread.
pub(super) fn timers() -> TimerTable {
    THIS.with(|thread| thread.timers.get())
}

/// Returns the timers of a thread when it ends.
struct ThreadExit;

thread_local! {
    static LEAVING: ThreadExit = const { ThreadExit };
}

impl Drop for ThreadExit {
    fn drop(&mut self) {
        // Destructors that run later get new timers and lose no events.
        THIS.with(|thread| {
            registry::lock().leave(thread.timers.replace(&[]));
            thread.innermost.set(None);
        });
    }
}
