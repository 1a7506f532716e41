//! Reading a clock through a model.

use crate::model::Counter;
use crate::{
    Clock, ClockModel, Domain, Duration, ErrorBound, ModelError, ModelPublisher, PublishedModel,
    Ticks, Timestamp,
};

/// A clock read through a model that can be replaced at any time: returns timestamps of the domain `D`.
///
/// ```
/// use downbeat_clock_core::{Clock, ClockModel, Duration, Global, ModelClock, TickRate, Ticks, Timestamp};
/// # use core::sync::atomic::{AtomicU64, Ordering};
/// # struct Steady(AtomicU64);
/// # impl Clock for Steady {
/// #     fn ticks(&self) -> Ticks { Ticks(self.0.fetch_add(10, Ordering::Relaxed)) }
/// # }
/// # let counter = Steady(AtomicU64::new(1_000));
/// let model = ClockModel::through(counter.ticks(), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// let clock = ModelClock::<_, Global>::new(counter, model);
///
/// let deadline = clock.now() + Duration::from_nanos(500);
/// let reached = clock.wait_until(deadline);
/// assert!(reached >= deadline);
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
#[derive(Debug)]
pub struct ModelClock<K, D: Domain> {
    clock: K,
    model: PublishedModel<D>,
}

impl<K: Clock, D: Domain> ModelClock<K, D> {
    /// Reads `clock` through `model`.
    pub fn new(clock: K, model: ClockModel<Counter, D>) -> Self {
        Self::with_bound(clock, model, ErrorBound::UNKNOWN)
    }

    /// Reads `clock` through `model`, whose largest error is known.
    pub fn with_bound(clock: K, model: ClockModel<Counter, D>, bound: ErrorBound<D>) -> Self {
        Self {
            model: PublishedModel::with_bound(model, bound, clock.instruction()),
            clock,
        }
    }

    /// The current time; ordered like the clock's [`ticks`](Clock::ticks).
    #[inline(always)]
    pub fn now(&self) -> Timestamp<D> {
        self.read(self.clock.ticks(), K::ticks)
    }

    /// Applies the model to a reading of the counter, which comes first: the loads of the model then overlap with the wait for it.
    #[inline(always)]
    fn read(&self, ticks: Ticks, again: fn(&K) -> Ticks) -> Timestamp<D> {
        let near = self.model.apply_near(ticks);
        near.unwrap_or_else(|| self.read_far(ticks, again))
    }

    /// Reads a clock that slews. A thread that was suspended since it read the counter, while the model was replaced twice, reads it `again`:
    /// the lines from that time are gone.
    fn read_far(&self, mut ticks: Ticks, again: fn(&K) -> Ticks) -> Timestamp<D> {
        loop {
            if let (shown, true) = self.model.apply_far(ticks) {
                return shown;
            }
            ticks = again(&self.clock);
        }
    }

    /// The current time and its largest error, which is [`Duration::MAX`] where none is known.
    #[inline(always)]
    pub fn now_with_error(&self) -> (Timestamp<D>, Duration) {
        let ticks = self.clock.ticks();
        self.model.apply_with_error(ticks)
    }

    /// Returns the earliest and the latest time that the reference can show now, by the published bound, rounded outward: without one,
    /// any time.
    #[inline(always)]
    pub fn now_with_bounds(&self) -> [Timestamp<D>; 2] {
        let ticks = self.clock.ticks();
        self.model.limits(ticks)
    }

    /// Opens an interval; see [`Clock::open`].
    #[inline(always)]
    pub fn open(&self) -> Timestamp<D> {
        self.read(self.clock.open(), K::open)
    }

    /// Closes an interval; see [`Clock::close`].
    #[inline(always)]
    pub fn close(&self) -> Timestamp<D> {
        self.read(self.clock.close(), K::close)
    }

    /// Spins until the clock shows `deadline` and returns the time it shows then; returns at once if that is past.
    ///
    /// Converts the deadline to ticks once and then compares ticks. A model published in the meantime does not move the
    /// deadline.
    pub fn wait_until(&self, deadline: Timestamp<D>) -> Timestamp<D> {
        let model = self.model.load_slewed();
        let target = model.invert(deadline);
        loop {
            let ticks = self.clock.ticks();
            if ticks >= target {
                return model.apply(ticks);
            }
            core::hint::spin_loop();
        }
    }

    /// The line that the clock shows, or will show once it has [slewed](crate::SlewedModel).
    pub fn model(&self) -> ClockModel<Counter, D> {
        self.model.load()
    }

    /// The cell that holds the model, and its bound.
    pub fn published(&self) -> &PublishedModel<D> {
        &self.model
    }

    /// The exclusive right to replace the model; `None` while another caller holds it.
    pub fn writer(&self) -> Option<ModelPublisher<'_, D>> {
        self.model.writer()
    }

    /// Goes over to another line, whose bound this is, `within` a time, or more slowly where the rate would change by more than a
    /// [slew](crate::SlewedModel::MOST) may. The clock neither jumps nor runs backward meanwhile. Returns false if it slews already, or if
    /// another caller holds the right to replace the model.
    ///
    /// # Errors
    /// If the lines are years apart.
    pub fn slew_toward(
        &self,
        line: ClockModel<Counter, D>,
        bound: ErrorBound<D>,
        within: Duration,
    ) -> Result<bool, ModelError> {
        let Some(mut writer) = self.model.writer() else {
            return Ok(false);
        };
        let present = self.model.load_slewed();
        while let Some(shown) = present.toward(line, self.clock.ticks(), within)? {
            // A thread that was suspended for longer than the lead begins again.
            if writer.publish_slewed(&shown, shown.bound(bound), || self.clock.ticks()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The clock underneath.
    pub fn clock(&self) -> &K {
        &self.clock
    }
}
