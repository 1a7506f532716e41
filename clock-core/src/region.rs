//! A timer of one region of a program.

mod scale;
mod statistics;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, fence};

pub use scale::TickScale;
pub use statistics::{MisuseCounts, RegionEvent, RegionStatistics, TimerMisuse};

use crate::Clock;
use crate::histogram::DecimalBin;

/// A timer of one region in one thread: keeps all statistics of White 2007 in constant memory.
///
/// An event is one run through the region. The timer counts events from 1 and keeps their total length, the longest, the
/// second longest and the shortest with their numbers, and the number of events in each [`DecimalBin`]. Lengths are exact,
/// in ticks of the clock; only the bins are in the program's unit, see [`TickScale`].
///
/// One thread drives a timer; others can read its [`statistics`](Self::statistics) at the same time. Driving it from two
/// threads at once is safe, but loses events.
///
/// ```
/// use downbeat_clock_core::histogram::DecimalBin;
/// use downbeat_clock_core::region::{RegionTimer, TickScale};
/// use downbeat_clock_core::{Clock, Duration, TickRate, Ticks};
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
/// // Stopping it once more is rejected and counted.
/// assert!(timer.stop().is_err());
/// assert_eq!(timer.statistics().misuse.stopped_while_stopped, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// The order of the fields puts those used by every event into two cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct RegionTimer<K> {
    clock: K,
    scale: TickScale,
    /// Overhead to subtract from each event, in ticks of the clock.
    overhead: u64,
    /// Reading of the clock at the start, plus `overhead`.
    start: AtomicU64,
    /// Number of open guards, or 1 after a start; 0 while the timer is stopped.
    depth: AtomicU64,
    /// Numbers of events whose recording has begun (`begun`) and ended (`events`); they differ only during a recording.
    begun: AtomicU64,
    events: AtomicU64,
    total: AtomicU64,
    second: AtomicU64,
    shortest: AtomicU64,
    /// Length of the last event, which is not in its bin yet; initially 0, without an event.
    last: AtomicU64,
    longest: AtomicU64,
    longest_event: AtomicU64,
    second_event: AtomicU64,
    shortest_event: AtomicU64,
    recursions: AtomicU64,
    started_while_running: AtomicU64,
    stopped_while_stopped: AtomicU64,
    backwards: AtomicU64,
    /// Counts without the last event; the first bin therefore starts at -1.
    bins: [AtomicU64; DecimalBin::COUNT],
}

/// -1: [`add`] wraps.
const MINUS_ONE: u64 = u64::MAX;

/// Adds to a counter that only this thread writes.
#[inline(always)]
fn add(to: &AtomicU64, value: u64) {
    // `fetch_add` would lock the bus.
    to.store(
        to.load(Ordering::Relaxed).wrapping_add(value),
        Ordering::Relaxed,
    );
}

impl<K: Clock> RegionTimer<K> {
    /// Creates a stopped timer without events.
    pub const fn new(clock: K, scale: TickScale) -> Self {
        Self::with_overhead(clock, scale, 0)
    }

    /// Creates a timer that subtracts an overhead, the apparent length of an empty region, from every event.
    ///
    /// `overhead` is in ticks of the clock. Events shorter than it get length 0.
    pub const fn with_overhead(clock: K, scale: TickScale, overhead: u64) -> Self {
        let mut bins = [const { AtomicU64::new(0) }; DecimalBin::COUNT];
        bins[0] = AtomicU64::new(MINUS_ONE);
        Self {
            clock,
            scale,
            overhead,
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

    /// Starts an event.
    ///
    /// # Errors
    /// If an event is running: it continues, and the misuse is counted.
    #[inline]
    pub fn start(&self) -> Result<(), TimerMisuse> {
        if self.depth.load(Ordering::Relaxed) != 0 {
            return Err(self.count(
                &self.started_while_running,
                TimerMisuse::StartedWhileRunning,
            ));
        }
        self.begin();
        Ok(())
    }

    /// Ends the event, even if a guard started it, and returns its length in ticks.
    ///
    /// # Errors
    /// If no event is running, or the clock ran backwards: no event is recorded, and the misuse is counted.
    #[inline]
    pub fn stop(&self) -> Result<u64, TimerMisuse> {
        // Read first, so that the timer's own work is not part of the event.
        let now = self.clock.ticks().0;
        if self.depth.load(Ordering::Relaxed) == 0 {
            return Err(self.count(
                &self.stopped_while_stopped,
                TimerMisuse::StoppedWhileStopped,
            ));
        }
        self.depth.store(0, Ordering::Relaxed);
        self.record(now)
    }

    /// Starts an event that ends when the guard is dropped.
    ///
    /// If the region is entered while it runs, as by a recursive function, the event lasts until all guards are dropped.
    /// Each further guard is counted as a recursion.
    #[inline]
    pub fn enter(&self) -> RegionGuard<'_, K> {
        self.open();
        RegionGuard {
            timer: self,
            not_send: PhantomData,
        }
    }

    /// Does what [`enter`](Self::enter) does, for guards of other types, which [`close`](Self::close) it.
    #[inline(always)]
    pub fn open(&self) {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth != 0 {
            self.descend(depth);
        } else {
            self.begin();
        }
    }

    #[inline(always)]
    fn begin(&self) {
        self.depth.store(1, Ordering::Relaxed);
        // Read last, so that the timer's own work is not part of the event.
        self.start.store(
            self.clock.ticks().0.wrapping_add(self.overhead),
            Ordering::Relaxed,
        );
    }

    /// Does what the drop of a guard does, and returns the length of the event in ticks; `None` if outer guards are left.
    ///
    /// # Errors
    /// If the event was stopped before, or the clock ran backwards: no event is recorded, and the misuse is counted.
    #[inline(always)]
    pub fn close(&self) -> Result<Option<u64>, TimerMisuse> {
        let now = self.clock.ticks().0;
        let depth = self.depth.load(Ordering::Relaxed);
        if depth != 1 {
            return self.ascend(depth).map(|()| None);
        }
        self.depth.store(0, Ordering::Relaxed);
        self.record(now).map(Some)
    }

    /// Adds an event that ends at `now` to the statistics.
    #[inline(always)]
    fn record(&self, now: u64) -> Result<u64, TimerMisuse> {
        let start = self.start.load(Ordering::Relaxed);
        let length = match now.checked_sub(start) {
            Some(length) => length,
            None => self.before_start(now, start)?,
        };
        let event = self.events.load(Ordering::Relaxed).wrapping_add(1);
        self.begun.store(event, Ordering::Relaxed);
        // Pairs with the fence of a reader: a reader that sees any part of this event also sees that it has begun.
        fence(Ordering::Release);
        add(&self.total, length);
        if length > self.second.load(Ordering::Relaxed) {
            self.record_long(length, event);
        }
        if length < self.shortest.load(Ordering::Relaxed) {
            self.shortest.store(length, Ordering::Relaxed);
            self.shortest_event.store(event, Ordering::Relaxed);
        }
        // Counts the event before this one: the bin of this one depends on the clock reading, and waiting for that would
        // make the pair of readings one and a half times as expensive.
        let last = self.last.load(Ordering::Relaxed);
        self.last.store(length, Ordering::Relaxed);
        add(&self.bins[self.bin(last)], 1);
        self.events.store(event, Ordering::Release);
        Ok(length)
    }

    #[inline(always)]
    fn bin(&self, length: u64) -> usize {
        DecimalBin::containing(self.scale.apply(length)).index()
    }

    /// Records a new longest or second longest event.
    #[cold]
    fn record_long(&self, length: u64, event: u64) {
        let longest = self.longest.load(Ordering::Relaxed);
        let (length_field, number_field) = if length > longest {
            self.second.store(longest, Ordering::Relaxed);
            self.second_event.store(
                self.longest_event.load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
            (&self.longest, &self.longest_event)
        } else {
            (&self.second, &self.second_event)
        };
        length_field.store(length, Ordering::Relaxed);
        number_field.store(event, Ordering::Relaxed);
    }

    /// Handles an event that ended before `start`: either it was shorter than the overhead and has length 0, or the clock
    /// ran backwards.
    #[cold]
    fn before_start(&self, now: u64, start: u64) -> Result<u64, TimerMisuse> {
        if start
            .checked_sub(now)
            .is_some_and(|missing| missing <= self.overhead)
        {
            return Ok(0);
        }
        Err(self.count(&self.backwards, TimerMisuse::ClockRanBackwards))
    }

    #[cold]
    fn count(&self, counter: &AtomicU64, misuse: TimerMisuse) -> TimerMisuse {
        add(counter, 1);
        misuse
    }

    #[cold]
    fn descend(&self, depth: u64) {
        self.depth.store(depth + 1, Ordering::Relaxed);
        add(&self.recursions, 1);
    }

    /// Drops an inner guard, or one whose event was stopped explicitly.
    #[cold]
    fn ascend(&self, depth: u64) -> Result<(), TimerMisuse> {
        let Some(outer) = depth.checked_sub(1) else {
            return Err(self.count(
                &self.stopped_while_stopped,
                TimerMisuse::StoppedWhileStopped,
            ));
        };
        self.depth.store(outer, Ordering::Relaxed);
        Ok(())
    }

    /// True while an event is running.
    pub fn is_running(&self) -> bool {
        self.depth.load(Ordering::Relaxed) != 0
    }

    /// The scale of the bins.
    pub fn scale(&self) -> TickScale {
        self.scale
    }

    /// Statistics of all events that ended.
    ///
    /// While another thread drives the timer, this retries a limited number of times to read between two events, which
    /// gives a consistent result. If events follow each other too fast, the total and the extremes may be some events
    /// ahead of the bins, and the number of events is the sum of the bins.
    pub fn statistics(&self) -> RegionStatistics {
        // Limited, because a writer can be preempted between the two counts.
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
        // Adds the last event, which is not in its bin yet; without events, this sets the first bin to 0.
        let last = &mut found.bins[self.bin(get(&self.last))];
        *last = last.wrapping_add(1);
        found
    }

    /// Discards all events, including a running one.
    ///
    /// Must be called by the thread that drives the timer.
    pub fn reset(&self) {
        let clear = |field: &AtomicU64| field.store(0, Ordering::Relaxed);
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
        self.bins[0].store(MINUS_ONE, Ordering::Relaxed);
        self.shortest.store(u64::MAX, Ordering::Relaxed);
        clear(&self.begun);
        clear(&self.events);
    }
}

/// A running event; it ends when the guard is dropped, also by a panic.
#[derive(Debug)]
#[must_use = "the region ends at once if its guard is not kept: `let _guard = ...`"]
pub struct RegionGuard<'a, K: Clock> {
    timer: &'a RegionTimer<K>,
    /// Keeps the guard in the thread of its timer.
    not_send: PhantomData<*const ()>,
}

impl<K: Clock> Drop for RegionGuard<'_, K> {
    #[inline]
    fn drop(&mut self) {
        // The timer counts misuse.
        let _ = self.timer.close();
    }
}

#[cfg(test)]
mod tests;
