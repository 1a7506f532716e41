//! Regions, and the lookup of the timer of the current thread.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use downbeat_clock_core::RegionGuard;

use super::registry::{self, ThreadTimer, TimerTable};
use super::setup::RegionClock;

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

thread_local! {
    // Without a destructor, which would need a check on every access.
    static TIMERS: Cell<TimerTable> = const { Cell::new(&[]) };
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
    pub fn enter(&self) -> RegionGuard<'static, RegionClock> {
        self.timer().enter()
    }

    /// Begins an event. If the region is running already, the event continues, and the misuse is
    /// counted for the report.
    #[inline]
    pub fn start(&self) {
        // The timer counts misuse.
        let _ = self.timer().start();
    }

    /// Ends the event that this thread began. If there is none, the misuse is counted for the
    /// report.
    #[inline]
    pub fn stop(&self) {
        // The timer counts misuse.
        let _ = self.timer().stop();
    }

    /// The name as given.
    pub fn name(&self) -> &str {
        self.name
    }

    #[inline(always)]
    fn timer(&self) -> &'static ThreadTimer {
        // The table belongs to this thread: a number without a timer needs the registry.
        match TIMERS
            .get()
            .get(self.number.load(Ordering::Relaxed))
            .and_then(OnceLock::get)
        {
            Some(timer) => timer,
            None => self.find_timer(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_timer(&self) -> &'static ThreadTimer {
        let mut registry = registry::lock();
        let mut number = self.number.load(Ordering::Relaxed);
        if number == usize::MAX {
            (_, number) = registry.number(self.name);
            self.number.store(number, Ordering::Relaxed);
        }
        let (timers, timer) = registry.timer(TIMERS.get(), number);
        TIMERS.set(timers);
        drop(registry);
        // While the thread is exiting, this fails, and its timers are kept.
        let _ = LEAVING.try_with(|_| ());
        timer
    }
}

/// Timers of the current thread.
pub(super) fn timers() -> TimerTable {
    TIMERS.get()
}

/// Returns the timers of a thread when it ends.
struct ThreadExit;

thread_local! {
    static LEAVING: ThreadExit = const { ThreadExit };
}

impl Drop for ThreadExit {
    fn drop(&mut self) {
        // Destructors that run later get new timers and lose no events.
        registry::lock().leave(TIMERS.replace(&[]));
    }
}
