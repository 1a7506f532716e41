//! Reading a clock.

use crate::model::Counter;
use crate::{ClockModel, Domain, Published, Publisher, Ticks, Timestamp};

/// What a read of a clock is ordered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadOrdering {
    /// Nothing: the processor may take the reading earlier or later than where it stands in the program. Two
    /// readings on two cores can come out in the wrong order.
    Unordered,
    /// Everything before it: taken once all earlier instructions are done and all earlier loads have their value.
    /// Later instructions may begin before it.
    Ordered,
    /// Everything before and after it.
    Fenced,
}

/// A clock that returns raw ticks.
///
/// A clock is a value that exists only where its counter can be read, so reading it cannot fail. What the ticks mean
/// is said by a [`TickRate`](crate::TickRate) or a [`ClockModel`].
pub trait Clock {
    /// The counter, now.
    fn ticks(&self) -> Ticks;

    /// What [`ticks`](Self::ticks) is ordered with.
    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Unordered
    }

    /// Opens an interval: nothing that follows starts before this reading, nothing before it ends after.
    #[inline(always)]
    fn open(&self) -> Ticks {
        self.ticks()
    }

    /// Closes an interval: everything before it is done, nothing that follows has started.
    #[inline(always)]
    fn close(&self) -> Ticks {
        self.ticks()
    }
}

impl<C: Clock> Clock for &C {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        (**self).ticks()
    }
    fn ordering(&self) -> ReadOrdering {
        (**self).ordering()
    }
    #[inline(always)]
    fn open(&self) -> Ticks {
        (**self).open()
    }
    #[inline(always)]
    fn close(&self) -> Ticks {
        (**self).close()
    }
}

/// A clock read through a model that may be replaced at any time: `now()` in the domain `D`.
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
/// let soon = clock.now() + Duration::from_nanos(500);
/// let woken = clock.wait_until(soon);
/// assert!(woken >= soon);
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
#[derive(Debug)]
pub struct ModelClock<K, D: Domain> {
    clock: K,
    model: Published<Counter, D>,
}

impl<K: Clock, D: Domain> ModelClock<K, D> {
    /// Reads `clock` through `model`.
    pub fn new(clock: K, model: ClockModel<Counter, D>) -> Self {
        Self {
            clock,
            model: Published::new(model),
        }
    }

    /// What time it is; ordered as the clock's [`ticks`](Clock::ticks) are.
    #[inline(always)]
    pub fn now(&self) -> Timestamp<D> {
        // The counter first: the loads of the model then overlap with the wait for the counter.
        let ticks = self.clock.ticks();
        self.model.load().apply(ticks)
    }

    /// Opens an interval; see [`Clock::open`].
    #[inline(always)]
    pub fn open(&self) -> Timestamp<D> {
        let ticks = self.clock.open();
        self.model.load().apply(ticks)
    }

    /// Closes an interval; see [`Clock::close`].
    #[inline(always)]
    pub fn close(&self) -> Timestamp<D> {
        let ticks = self.clock.close();
        self.model.load().apply(ticks)
    }

    /// Spins until the clock shows `deadline`, and returns what it showed then; at once if that is past.
    ///
    /// Converts the deadline to ticks once and then compares ticks. A model published meanwhile does not move the
    /// deadline.
    pub fn wait_until(&self, deadline: Timestamp<D>) -> Timestamp<D> {
        let model = self.model.load();
        let target = model.invert(deadline);
        loop {
            let ticks = self.clock.ticks();
            if ticks >= target {
                return model.apply(ticks);
            }
            core::hint::spin_loop();
        }
    }

    /// The model in use.
    pub fn model(&self) -> ClockModel<Counter, D> {
        self.model.load()
    }

    /// The right to replace the model, unless another holds it.
    pub fn writer(&self) -> Option<Publisher<'_, Counter, D>> {
        self.model.writer()
    }

    /// The clock underneath.
    pub fn clock(&self) -> &K {
        &self.clock
    }
}
