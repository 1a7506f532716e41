//! Whether a counter shows the same on all cores.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use downbeat_clock_core::{
    Clock, Domain, Duration, Exchange, SkampiOffset, TickRate, Ticks, Timestamp,
};

use crate::{CoreError, CoreId, pin_to};

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

/// Up to this many cores, [`compare_cores`] compares every pair; beyond, every core with the first.
pub const ALL_PAIRS_UP_TO: usize = 8;

/// A comparison of two cores stops after this time, if it has [`MIN_EXCHANGES`] exchanges: on busy cores most of them take as
/// long as a time slice of the system.
const MAX_TIME: Duration = Duration::from_millis(100);

/// So many exchanges are made while both players run at once, whatever else the cores have to do.
const MIN_EXCHANGES: u64 = 50;

/// Compares what a clock shows on several cores, by exchanging its readings through a shared cache line.
///
/// `grain` is what the clock counts in ([`Resolution::grain`](crate::Resolution::grain)): how far a reading can be from
/// the time that it was taken.
///
/// Starts two threads for each pair and pins them; the calling thread stays where it is. Makes up to `exchanges`
/// exchanges for each, which takes some tenths of a millisecond for a thousand, and stops after 100 ms.
///
/// # Errors
/// The first pair that cannot be compared, and why.
pub fn compare_cores<C: Clock + Sync>(
    clock: &C,
    rate: TickRate,
    grain: Duration,
    cores: &[CoreId],
    exchanges: u32,
) -> Result<Vec<CoreOffset>, CoreError> {
    let references = if cores.len() <= ALL_PAIRS_UP_TO {
        cores.len()
    } else {
        1
    };
    (0..references)
        .flat_map(|reference| (reference + 1..cores.len()).map(move |core| (core, reference)))
        .map(|(core, reference)| {
            compare_pair(
                clock,
                rate,
                grain,
                [cores[core], cores[reference]],
                exchanges,
            )
        })
        .collect()
}

/// Compares what a clock shows on two cores, the second being the reference; see [`compare_cores`].
///
/// # Errors
/// When that is impossible, why.
pub fn compare_pair<C: Clock + Sync>(
    clock: &C,
    rate: TickRate,
    grain: Duration,
    [core, reference]: [CoreId; 2],
    exchanges: u32,
) -> Result<CoreOffset, CoreError> {
    if core == reference {
        return Err(CoreError::SameCore(core));
    }
    let line = PingPongLine::default();
    let estimator = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            pin_to(core).inspect_err(|_| line.leave())?;
            line.ask(clock, rate, exchanges)
        });
        let answering = scope.spawn(|| {
            pin_to(reference).inspect_err(|_| line.leave())?;
            line.answer(clock, exchanges);
            Ok(())
        });
        let (asked, answered) = (asking.join(), answering.join());
        answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let sample = estimator.estimate().map_err(CoreError::Readings)?;
    // Each side of the interval is the difference of two stamps, each up to a grain late and rounded to a nanosecond.
    let half_width = sample.half_width.unwrap_or(Duration::MAX) + grain + Duration::from_nanos(1);
    Ok(CoreOffset {
        core,
        reference,
        offset: sample.offset,
        half_width,
    })
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
struct PingPongLine {
    /// How often the ball has crossed: odd, it is the answering core's turn.
    ball: AtomicU64,
    /// What the answering core read last.
    answer: AtomicU64,
    /// A player has gone. Not a state of the ball: the other player, who does not know yet, would overwrite it.
    left: AtomicBool,
}

impl PingPongLine {
    fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    /// Whether the ball came; `false` when the other player has gone.
    ///
    /// Spins and never yields: on a busy machine the players meet only while both are running, and each would keep
    /// missing the other.
    fn await_ball(&self, crossings: u64) -> bool {
        while self.ball.load(Ordering::Acquire) != crossings {
            if self.left.load(Ordering::Relaxed) {
                return false;
            }
            core::hint::spin_loop();
        }
        true
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
    ) -> Result<SkampiOffset<Asking, Answering>, CoreError> {
        // Both cores are put on one scale, which begins here.
        let origin = clock.ticks();
        let nanos = |ticks: Ticks| match ticks.checked_since(origin) {
            Some(later) => rate.duration(later).as_nanos(),
            None => -rate.duration(origin.0 - ticks.0).as_nanos(),
        };
        let mut estimator = SkampiOffset::new();
        let began = Instant::now();
        for i in 0..u64::from(exchanges) {
            if i >= MIN_EXCHANGES
                && began.elapsed().as_nanos() > MAX_TIME.as_nanos().unsigned_abs().into()
            {
                self.leave();
                break;
            }
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
            estimator.push(exchange).map_err(CoreError::Readings)?;
        }
        Ok(estimator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::FitError;

    use crate::{SystemClock, SystemClockId, allowed_cores, current_core};

    const GRAIN: Duration = Duration::from_nanos(1);

    /// A true clock that is ahead on one core.
    struct AheadOn(CoreId, u64);

    impl Clock for AheadOn {
        fn ticks(&self) -> Ticks {
            let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
            let ahead = if current_core() == Some(self.0) {
                self.1
            } else {
                0
            };
            raw.ticks().saturating_add(ahead)
        }
    }

    /// The first two cores; a machine with one has nothing to compare, and a test there nothing to test.
    fn two_cores() -> [CoreId; 2] {
        allowed_cores()[..2]
            .try_into()
            .expect("this test needs two cores")
    }

    #[test]
    fn a_core_that_is_ahead_is_found_within_the_bound() {
        let [reference, core] = two_cores();
        for ahead in [0, 1_000_000_000] {
            let clock = AheadOn(core, ahead);
            let found =
                compare_pair(&clock, SystemClock::RATE, GRAIN, [core, reference], 500).unwrap();
            let error = found.offset - Duration::from_nanos(ahead as i64);
            assert!(error.abs() <= found.half_width, "{found:?}");
            // A second is more than an exchange between two cores is uncertain by, however busy they are.
            assert_eq!(found.may_be_zero(), ahead == 0, "{found:?}");
            assert!(found.bound() >= Duration::from_nanos(ahead as i64));
        }
    }

    #[test]
    fn the_cores_of_the_system_clock_agree() {
        let cores = two_cores();
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let found = compare_cores(&raw, SystemClock::RATE, GRAIN, &cores, 500).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].may_be_zero(), "{found:?}");
    }

    #[test]
    fn what_cannot_be_compared_is_refused_and_no_thread_waits_for_ever() {
        let [core, _] = two_cores();
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let error = |core, reference, exchanges| {
            compare_pair(&raw, SystemClock::RATE, GRAIN, [core, reference], exchanges).unwrap_err()
        };
        let nowhere = CoreId(u32::MAX);
        assert_eq!(error(core, core, 10), CoreError::SameCore(core));
        // Often, because it depends on who comes first.
        for _ in 0..100 {
            assert_eq!(error(core, nowhere, 10), CoreError::NotAllowed(nowhere));
            assert_eq!(error(nowhere, core, 10), CoreError::NotAllowed(nowhere));
        }
        assert_eq!(
            error(core, two_cores()[1], 0),
            CoreError::Readings(FitError::NoExchanges)
        );
        assert_eq!(
            compare_cores(&raw, SystemClock::RATE, GRAIN, &[core], 10),
            Ok(vec![])
        );
    }
}
