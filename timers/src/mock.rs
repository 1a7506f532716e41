//! A clock that stands still until a test moves it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use downbeat_clock_core::{Clock, Duration, ReadOrdering, TickRate, Ticks};

/// A clock for tests of code that is generic over its [`Clock`]: it shows what was set. Its ticks are nanoseconds, and its clones
/// are one clock, which one thread moves while others read it.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Global, ModelClock, Timestamp};
/// use downbeat_timers::{Clock, Duration, MockClock, Ticks};
///
/// fn is_late(clock: &ModelClock<impl Clock, Global>, deadline: Timestamp<Global>) -> bool {
///     clock.now() > deadline
/// }
///
/// let mock = MockClock::new(Ticks(5));
/// let model = ClockModel::through(Ticks(0), Timestamp::ORIGIN, MockClock::RATE)?;
/// let clock = ModelClock::new(mock.clone(), model);
/// let deadline = Timestamp::from_nanos(1_000);
/// assert!(!is_late(&clock, deadline));
/// mock.advance(Duration::from_micros(1));
/// assert!(is_late(&clock, deadline));
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MockClock(Arc<AtomicU64>);

impl MockClock {
    /// Length of a tick.
    pub const RATE: TickRate = TickRate::NANOSECOND;

    /// Creates a clock that shows `ticks`.
    pub fn new(ticks: Ticks) -> Self {
        Self(Arc::new(AtomicU64::new(ticks.0)))
    }

    /// Sets the clock, also back.
    pub fn set(&self, ticks: Ticks) {
        self.0.store(ticks.0, Ordering::SeqCst);
    }

    /// Moves the clock; back by a negative span.
    pub fn advance(&self, by: Duration) {
        let moved = |ticks: u64| Some(ticks.saturating_add_signed(by.as_nanos()));
        // The function always returns a value.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, moved);
    }
}

impl Clock for MockClock {
    fn ticks(&self) -> Ticks {
        Ticks(self.0.load(Ordering::SeqCst))
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Ordered
    }
}
