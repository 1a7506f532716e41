//! Whether a counter shows the same on all cores.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use downbeat_clock_core::{
    Clock, Domain, Duration, Exchange, SkampiOffset, TickRate, Ticks, Timestamp,
};

use crate::{CoreId, PinError, pin_to};

/// The offset between what a counter shows on two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreOffset {
    /// The core that was compared.
    pub core: CoreId,
    /// The core it was compared with.
    pub reference: CoreId,
    /// What `core` shows minus what `reference` shows.
    pub offset: Duration,
    /// How far that can be wrong.
    pub half_width: Duration,
}

impl CoreOffset {
    /// Whether the two cores may well show the same: zero is not excluded.
    pub fn may_be_zero(&self) -> bool {
        self.offset.abs() <= self.half_width
    }

    /// The largest offset that is not excluded.
    pub fn bound(&self) -> Duration {
        self.offset.abs() + self.half_width
    }
}

/// Why two cores could not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareError {
    /// A thread could not be put on its core.
    Pin(PinError),
    /// The counters moved against each other while they were compared, by this much.
    Drifted(Duration),
    /// The counter ran backwards on one of the cores.
    Backwards,
    /// A core cannot be compared with itself.
    SameCore(CoreId),
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(why) => why.fmt(f),
            Self::Drifted(by) => write!(f, "the counters of the two cores moved against each other by {by}"),
            Self::Backwards => f.write_str("the counter ran backwards on one core"),
            Self::SameCore(core) => write!(f, "core {core} cannot be compared with itself"),
        }
    }
}

impl core::error::Error for CompareError {}

/// Up to this many cores, [`compare_cores`] compares every pair; beyond, every core with the first.
pub const ALL_PAIRS_UP_TO: usize = 8;

/// Compares what a clock shows on several cores, by exchanging its readings through a shared cache line.
///
/// Starts two threads for each pair and pins them; the calling thread stays where it is. Costs some tenths of a
/// millisecond a pair.
///
/// # Errors
/// The first pair that cannot be compared, and why.
pub fn compare_cores<C: Clock + Sync>(
    clock: &C,
    rate: TickRate,
    cores: &[CoreId],
    exchanges: u32,
) -> Result<Vec<CoreOffset>, CompareError> {
    let references = if cores.len() <= ALL_PAIRS_UP_TO { cores.len() } else { 1 };
    (0..references)
        .flat_map(|reference| (reference + 1..cores.len()).map(move |core| (core, reference)))
        .map(|(core, reference)| compare_pair(clock, rate, cores[core], cores[reference], exchanges))
        .collect()
}

/// Compares what a clock shows on two cores.
///
/// # Errors
/// When that is impossible, why.
pub fn compare_pair<C: Clock + Sync>(
    clock: &C,
    rate: TickRate,
    core: CoreId,
    reference: CoreId,
    exchanges: u32,
) -> Result<CoreOffset, CompareError> {
    if core == reference {
        return Err(CompareError::SameCore(core));
    }
    let table = Table::default();
    let estimator = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            pin_to(core).inspect_err(|_| table.leave()).map_err(CompareError::Pin)?;
            table.ask(clock, rate, exchanges)
        });
        let answering = scope.spawn(|| {
            pin_to(reference).inspect_err(|_| table.leave()).map_err(CompareError::Pin)?;
            table.answer(clock, exchanges);
            Ok(())
        });
        let (asked, answered) = (asking.join(), answering.join());
        answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let sample = estimator.estimate().map_err(|why| match why {
        OffsetError::Drifted { by } => CompareError::Drifted(by),
        _ => CompareError::Backwards,
    })?;
    Ok(CoreOffset { core, reference, offset: sample.offset, half_width: sample.half_width.unwrap_or(Duration::MAX) })
}

/// The core that asks, and the core that answers: the same counter, read in two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Asking;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Answering;

impl Domain for Asking {
    const NAME: &'static str = "asking core";
}
impl Domain for Answering {
    const NAME: &'static str = "answering core";
}

/// The cache line through which two cores play ping-pong.
#[derive(Default)]
#[repr(align(64))]
struct Table {
    /// How often the ball has crossed: odd, it is the answering core's turn; [`Table::LEFT`], a player has gone.
    ball: AtomicU64,
    /// What the answering core read last.
    answer: AtomicU64,
}

impl Table {
    const LEFT: u64 = u64::MAX;

    fn leave(&self) {
        self.ball.store(Self::LEFT, Ordering::Release);
    }

    /// Whether the ball came; `false` when the other player has gone.
    fn await_ball(&self, crossings: u64) -> bool {
        let mut spins = 0_u32;
        loop {
            match self.ball.load(Ordering::Acquire) {
                seen if seen == crossings => return true,
                Self::LEFT => return false,
                _ => {}
            }
            spins += 1;
            // The other core may have more to do than this.
            if spins.is_multiple_of(10_000) { thread::yield_now() } else { core::hint::spin_loop() }
        }
    }

    fn answer(&self, clock: &impl Clock, exchanges: u32) {
        for i in 0..u64::from(exchanges) {
            if !self.await_ball(2 * i + 1) {
                return;
            }
            self.answer.store(clock.ticks().0, Ordering::Relaxed);
            self.ball.store(2 * i + 2, Ordering::Release);
        }
    }

    fn ask(
        &self,
        clock: &impl Clock,
        rate: TickRate,
        exchanges: u32,
    ) -> Result<SkampiOffset<Asking, Answering>, CompareError> {
        // Both cores are put on one scale, which begins here.
        let origin = clock.ticks();
        let nanos = |ticks: Ticks| match ticks.checked_since(origin) {
            Some(later) => rate.duration(later).as_nanos(),
            None => -rate.duration(origin.0 - ticks.0).as_nanos(),
        };
        let mut estimator = SkampiOffset::new();
        for i in 0..u64::from(exchanges) {
            let sent = clock.open();
            self.ball.store(2 * i + 1, Ordering::Release);
            if !self.await_ball(2 * i + 2) {
                break;
            }
            let received = clock.close();
            let answered = Ticks(self.answer.load(Ordering::Relaxed));
            let exchange = Exchange {
                sent: Timestamp::from_nanos(nanos(sent)),
                answered: Timestamp::from_nanos(nanos(answered)),
                received: Timestamp::from_nanos(nanos(received)),
            };
            estimator.push(exchange).map_err(|_| CompareError::Backwards)?;
        }
        Ok(estimator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SkewedClock, Skew, SystemClock, SystemClockId, allowed_cores, current_core};
    use std::sync::OnceLock;

    fn monotonic() -> SystemClock {
        SystemClock::detect(SystemClockId::MonotonicRaw).unwrap()
    }

    /// The true clock, but on one core it is ahead.
    struct AheadOn(CoreId, u64);

    impl Clock for AheadOn {
        fn ticks(&self) -> Ticks {
            let ahead = if current_core() == Some(self.0) { self.1 } else { 0 };
            monotonic().ticks().saturating_add(ahead)
        }
    }
}
