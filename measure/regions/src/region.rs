//! A region of a program, and how its call sites find the timer of their thread.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use downbeat_clock_core::RegionGuard;

use super::registry::{self, ThreadTimer, TimerTable};
use super::setup::RegionClock;

/// A region of a program that is timed: in each thread by a timer of its own.
///
/// Regions of the same name are one, wherever they stand; see [`regions`](super) for what names there are. To use one
/// takes no lock, but for the first time in each thread.
///
/// ```
/// use downbeat_regions::{Region};
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
    /// What the registry calls it, or a number that no region has.
    number: AtomicUsize,
}

thread_local! {
    // Without a destructor, so that nothing has to be checked before it is read.
    static TIMERS: Cell<TimerTable> = const { Cell::new(&[]) };
}

impl Region {
    /// A region of this name; nothing is done before it is used.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            number: AtomicUsize::new(usize::MAX),
        }
    }

    /// A region whose name is known only when the program runs. The name is kept for ever, once.
    pub fn named(name: &str) -> Self {
        let (name, number) = registry::lock().number(name);
        Self {
            name,
            number: AtomicUsize::new(number),
        }
    }

    /// Begins an event that ends when the guard is dropped.
    ///
    /// A region that is entered while it runs in this thread, as a recursive function does, goes on until all guards
    /// are dropped: this is one event.
    #[inline]
    pub fn enter(&self) -> RegionGuard<'static, RegionClock> {
        self.timer().enter()
    }

    /// Begins an event. One that is under way goes on, and the misuse is counted and told in the report.
    #[inline]
    pub fn start(&self) {
        // Was counted.
        let _ = self.timer().start();
    }

    /// Ends the event that this thread began. If there is none, the misuse is counted and told in the report.
    #[inline]
    pub fn stop(&self) {
        // Was counted.
        let _ = self.timer().stop();
    }

    /// The name as it was given.
    pub fn name(&self) -> &str {
        self.name
    }

    #[inline(always)]
    fn timer(&self) -> &'static ThreadTimer {
        // The table is this thread's own, so that a number without its timer leads to the registry.
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
        // If the thread's end has come so far that it is not told of any more, its timers simply stay.
        let _ = LEAVING.try_with(|_| ());
        timer
    }
}

/// The timers of the thread that calls.
pub(super) fn timers() -> TimerTable {
    TIMERS.get()
}

/// Hands the timers of a thread back when it ends.
struct ThreadExit;

thread_local! {
    static LEAVING: ThreadExit = const { ThreadExit };
}

impl Drop for ThreadExit {
    fn drop(&mut self) {
        // Destructors that run later begin anew, and lose nothing either.
        registry::lock().leave(TIMERS.replace(&[]));
    }
}
