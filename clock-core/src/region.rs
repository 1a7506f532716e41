//! Timing one region of a program, event by event.

mod scale;
mod statistics;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, fence};

pub use scale::TickScale;
pub use statistics::{Misuse, MisuseCounts, RegionEvent, RegionStatistics};

use crate::{Clock, DecimalBin};

/// A timer of one region, for one thread: it keeps all statistics of the 2007 paper, in constant memory.
///
/// An event is one run through the region. The timer counts events from 1 and keeps how long all of them took together,
/// the longest, the second longest and the shortest with their numbers, and how many fell into each [`DecimalBin`].
/// Lengths are kept exactly, in ticks of the clock; only the bins are in the program's unit, see [`TickScale`].
///
/// One thread drives a timer; others may look at it meanwhile, by [`statistics`](Self::statistics). To be driven by
/// two at once does it no harm, but loses events.
///
/// ```
/// use downbeat_clock_core::{Clock, DecimalBin, Duration, RegionTimer, TickRate, TickScale, Ticks};
/// # use core::cell::Cell;
/// # struct ScriptedClock(Cell<u64>);
/// # impl Clock for ScriptedClock {
/// #     fn ticks(&self) -> Ticks { self.0.set(self.0.get() * 2); Ticks(self.0.get()) }
/// # }
/// # let clock = ScriptedClock(Cell::new(1));
/// // A clock that shows 2, 4, 8, 16, ... nanoseconds.
/// let timer = RegionTimer::new(clock, TickScale::new(TickRate::NANOSECOND, Duration::from_nanos(1))?);
/// for _ in 0..3 {
///     timer.start()?;
///     timer.stop()?;
/// }
/// let found = timer.statistics();
/// assert_eq!((found.events, found.total), (3, 2 + 8 + 32));
/// let longest = found.longest.ok_or("there were events")?;
/// assert_eq!((longest.length, longest.number), (32, 3));
/// assert_eq!(found.count(DecimalBin::containing(39)), 1);
///
/// // To stop it once more is refused, and counted.
/// assert!(timer.stop().is_err());
/// assert_eq!(timer.statistics().misuse.stopped_while_stopped, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// In this order: what every event needs fills two cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct RegionTimer<K> {
    clock: K,
    scale: TickScale,
    /// What an event costs the timer itself, in ticks of the clock; 0 unless it is to be subtracted.
    own: u64,
    /// What the clock showed at the start, and as much later as `own` says.
    start: AtomicU64,
    /// Guards that are open, or 1 after a start; 0 when it is stopped.
    depth: AtomicU64,
    /// Events whose recording has begun, and has ended: equal unless a reader comes in between.
    begun: AtomicU64,
    events: AtomicU64,
    total: AtomicU64,
    second: AtomicU64,
    shortest: AtomicU64,
    /// The length of the last event, which is not in its bin yet; at first one of length 0, which there was not.
    last: AtomicU64,
    longest: AtomicU64,
    longest_event: AtomicU64,
    second_event: AtomicU64,
    shortest_event: AtomicU64,
    recursions: AtomicU64,
    started_while_running: AtomicU64,
    stopped_while_stopped: AtomicU64,
    backwards: AtomicU64,
    /// But for the last event; hence the first bin is one short.
    bins: [AtomicU64; DecimalBin::COUNT],
}

/// One less than nothing, as [`add`] wraps.
const ONE_SHORT: u64 = u64::MAX;

/// Adds to what only this thread writes.
#[inline(always)]
fn add(to: &AtomicU64, value: u64) {
    // Not `fetch_add`, which locks the bus.
    to.store(
        to.load(Ordering::Relaxed).wrapping_add(value),
        Ordering::Relaxed,
    );
}

impl<K: Clock> RegionTimer<K> {
    /// A timer that is stopped, and has seen no event.
    pub const fn new(clock: K, scale: TickScale) -> Self {
        Self::with_overhead(clock, scale, 0)
    }

    /// A timer that takes so many ticks of the clock off every event: those that an empty region seems to last.
    ///
    /// An event that is shorter lasts 0.
    pub const fn with_overhead(clock: K, scale: TickScale, own: u64) -> Self {
        let mut bins = [const { AtomicU64::new(0) }; DecimalBin::COUNT];
        bins[0] = AtomicU64::new(ONE_SHORT);
        Self {
            clock,
            scale,
            own,
            start: AtomicU64::new(0),
            depth: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            events: AtomicU64::new(0),
            total: AtomicU64::new(0),
            second: AtomicU64::new(0),
            shortest: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            longest_event: AtomicU64::new(0),
            second_event: AtomicU64::new(0),
            shortest_event: AtomicU64::new(0),
            recursions: AtomicU64::new(0),
            started_while_running: AtomicU64::new(0),
            stopped_while_stopped: AtomicU64::new(0),
            backwards: AtomicU64::new(0),
            bins,
        }
    }

    /// Begins an event.
    ///
    /// # Errors
    /// When one is under way: that one goes on as if nothing had happened, and the misuse is counted.
    #[inline]
    pub fn start(&self) -> Result<(), Misuse> {
        if self.depth.load(Ordering::Relaxed) != 0 {
            return Err(self.count(&self.started_while_running, Misuse::StartedWhileRunning));
        }
        self.begin();
        Ok(())
    }

    /// Ends the event, also one that a guard began.
    ///
    /// # Errors
    /// When none is under way, or the clock ran backwards: there is no event then, and the misuse is counted.
    #[inline]
    pub fn stop(&self) -> Result<(), Misuse> {
        // First of all: what the timer does is not the region's time.
        let now = self.clock.ticks().0;
        if self.depth.load(Ordering::Relaxed) == 0 {
            return Err(self.count(&self.stopped_while_stopped, Misuse::StoppedWhileStopped));
        }
        self.depth.store(0, Ordering::Relaxed);
        self.record(now)
    }

    /// Begins an event that ends when the guard is dropped.
    ///
    /// A region that is entered while it runs, as a recursive function does, goes on until all of its guards are
    /// dropped: this is one event. Each further guard is counted as a recursion.
    #[inline]
    pub fn enter(&self) -> RegionGuard<'_, K> {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth != 0 {
            self.descend(depth);
        } else {
            self.begin();
        }
        RegionGuard {
            timer: self,
            not_send: PhantomData,
        }
    }

    #[inline(always)]
    fn begin(&self) {
        self.depth.store(1, Ordering::Relaxed);
        // Last of all.
        self.start.store(
            self.clock.ticks().0.wrapping_add(self.own),
            Ordering::Relaxed,
        );
    }

    #[inline(always)]
    fn leave(&self) {
        let now = self.clock.ticks().0;
        let depth = self.depth.load(Ordering::Relaxed);
        if depth != 1 {
            self.ascend(depth);
            return;
        }
        self.depth.store(0, Ordering::Relaxed);
        // A clock that ran backwards was counted.
        let _ = self.record(now);
    }

    /// Adds an event to the statistics.
    #[inline(always)]
    fn record(&self, now: u64) -> Result<(), Misuse> {
        let start = self.start.load(Ordering::Relaxed);
        let length = match now.checked_sub(start) {
            Some(length) => length,
            None => self.before_start(now, start)?,
        };
        let event = self.events.load(Ordering::Relaxed).wrapping_add(1);
        self.begun.store(event, Ordering::Relaxed);
        // Pairs with the fence of a reader: who sees anything of this event sees that it has begun.
        fence(Ordering::Release);
        add(&self.total, length);
        if length > self.second.load(Ordering::Relaxed) {
            self.record_long(length, event);
        }
        if length < self.shortest.load(Ordering::Relaxed) {
            self.shortest.store(length, Ordering::Relaxed);
            self.shortest_event.store(event, Ordering::Relaxed);
        }
        // The bin of the event before this one: that of this one could only be found when the clock has answered, and
        // to wait for that would make the pair of readings half as expensive again.
        let last = self.last.load(Ordering::Relaxed);
        self.last.store(length, Ordering::Relaxed);
        add(&self.bins[self.bin(last)], 1);
        self.events.store(event, Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    fn bin(&self, length: u64) -> usize {
        DecimalBin::containing(self.scale.apply(length)).index()
    }

    /// The longest so far, or the second longest.
    #[cold]
    fn record_long(&self, length: u64, event: u64) {
        let longest = self.longest.load(Ordering::Relaxed);
        let (place, number) = if length > longest {
            self.second.store(longest, Ordering::Relaxed);
            self.second_event.store(
                self.longest_event.load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
            (&self.longest, &self.longest_event)
        } else {
            (&self.second, &self.second_event)
        };
        place.store(length, Ordering::Relaxed);
        number.store(event, Ordering::Relaxed);
    }

    /// The event was shorter than what is to be subtracted; or the clock ran backwards, and there is no event.
    #[cold]
    fn before_start(&self, now: u64, start: u64) -> Result<u64, Misuse> {
        if start
            .checked_sub(now)
            .is_some_and(|missing| missing <= self.own)
        {
            return Ok(0);
        }
        Err(self.count(&self.backwards, Misuse::ClockRanBackwards))
    }

    #[cold]
    fn count(&self, counter: &AtomicU64, misuse: Misuse) -> Misuse {
        add(counter, 1);
        misuse
    }

    #[cold]
    fn descend(&self, depth: u64) {
        self.depth.store(depth + 1, Ordering::Relaxed);
        add(&self.recursions, 1);
    }

    /// An inner guard, or one whose event was stopped meanwhile.
    #[cold]
    fn ascend(&self, depth: u64) {
        match depth.checked_sub(1) {
            Some(outer) => self.depth.store(outer, Ordering::Relaxed),
            None => add(&self.stopped_while_stopped, 1),
        }
    }

    /// Whether an event is under way.
    pub fn is_running(&self) -> bool {
        self.depth.load(Ordering::Relaxed) != 0
    }

    /// The unit of its bins.
    pub fn scale(&self) -> TickScale {
        self.scale
    }

    /// What it has seen so far: events that ended. That one is under way is told, too.
    ///
    /// While another thread drives the timer this waits, but not for ever, for a moment between two events: what is
    /// returned is then as of one moment. Where events follow each other faster than they can be read, the total and
    /// the extremes may be some events ahead of the bins, which are then what the events are counted by.
    pub fn statistics(&self) -> RegionStatistics {
        // A writer that was interrupted between the two counts may stay away for long.
        const ATTEMPTS: usize = 100;
        for _ in 0..ATTEMPTS {
            let found = self.read();
            // Pairs with the fence of the writer.
            fence(Ordering::Acquire);
            if self.begun.load(Ordering::Relaxed) == found.events {
                return found;
            }
            core::hint::spin_loop();
        }
        let mut found = self.read();
        found.events = found
            .bins
            .iter()
            .fold(0, |sum: u64, count| sum.wrapping_add(*count));
        found
    }

    fn read(&self) -> RegionStatistics {
        let get = |from: &AtomicU64| from.load(Ordering::Relaxed);
        let events = self.events.load(Ordering::Acquire);
        let event = |length, number| RegionEvent {
            length: get(length),
            number: get(number),
        };
        let mut found = RegionStatistics {
            events,
            total: get(&self.total),
            misuse: MisuseCounts {
                started_while_running: get(&self.started_while_running),
                stopped_while_stopped: get(&self.stopped_while_stopped),
                clock_ran_backwards: get(&self.backwards),
            },
            recursions: get(&self.recursions),
            is_running: self.is_running(),
            ..RegionStatistics::default()
        };
        found.set_extremes(
            event(&self.longest, &self.longest_event),
            event(&self.second, &self.second_event),
            event(&self.shortest, &self.shortest_event),
        );
        for (to, from) in found.bins.iter_mut().zip(&self.bins) {
            *to = get(from);
        }
        // The one that is not in its bin yet; if there was no event, this makes the first bin whole.
        let last = &mut found.bins[self.bin(get(&self.last))];
        *last = last.wrapping_add(1);
        found
    }

    /// Forgets all events; one that is under way is not counted either.
    ///
    /// For the thread that drives it.
    pub fn reset(&self) {
        let clear = |what: &AtomicU64| what.store(0, Ordering::Relaxed);
        clear(&self.depth);
        [&self.total, &self.second, &self.longest, &self.last]
            .into_iter()
            .for_each(clear);
        [
            &self.longest_event,
            &self.second_event,
            &self.shortest_event,
        ]
        .into_iter()
        .for_each(clear);
        [
            &self.recursions,
            &self.started_while_running,
            &self.stopped_while_stopped,
            &self.backwards,
        ]
        .into_iter()
        .for_each(clear);
        self.bins.iter().for_each(clear);
        self.bins[0].store(ONE_SHORT, Ordering::Relaxed);
        self.shortest.store(u64::MAX, Ordering::Relaxed);
        clear(&self.begun);
        clear(&self.events);
    }
}

/// An event that is under way; it ends when this is dropped, also by a panic.
#[derive(Debug)]
#[must_use = "the region ends at once if its guard is not kept: `let _guard = ...`"]
pub struct RegionGuard<'a, K: Clock> {
    timer: &'a RegionTimer<K>,
    /// A timer is of one thread.
    not_send: PhantomData<*const ()>,
}

impl<K: Clock> Drop for RegionGuard<'_, K> {
    #[inline]
    fn drop(&mut self) {
        self.timer.leave();
    }
}

#[cfg(test)]
mod tests;
