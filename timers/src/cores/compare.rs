//! Comparison of a counter between cores.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Builder};
use std::time::Instant;

use downbeat_clock_core::offset::{Exchange, SkampiOffset};
use downbeat_clock_core::{Clock, Domain, Duration, TickRate, Ticks, Timestamp};

use crate::cores::{CoreError, CoreId, pin_to};

/// The offset of a counter between two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreOffset {
    /// Compared core.
    pub core: CoreId,
    /// Reference core.
    pub reference: CoreId,
    /// Counter on `core` minus counter on `reference`.
    pub offset: Duration,
    /// Upper limit of the error of `offset`.
    pub half_width: Duration,
}

impl CoreOffset {
    /// True if the offset may be zero.
    pub fn may_be_zero(&self) -> bool {
        self.offset.abs() <= self.half_width
    }

    /// The largest possible magnitude of the offset.
    pub fn bound(&self) -> Duration {
        self.offset.abs() + self.half_width
    }
}

/// Up to this number of cores [`compare_cores`] compares every pair; for more, every core with the first.
pub const ALL_PAIRS_UP_TO: usize = 8;

/// Time limit of a comparison of two cores that has [`MIN_EXCHANGES`] exchanges: on busy cores most exchanges take as
/// long as a time slice of the scheduler.
const MAX_TIME: Duration = Duration::from_millis(100);

/// Minimum number of exchanges before the time limit applies, so that some are made while both threads run at once.
const MIN_EXCHANGES: u64 = 50;

/// Compares the readings of a clock on several cores by cache-line ping-pongs.
///
/// Starts two threads for each pair and pins them; the calling thread is not moved. Makes up to `exchanges` exchanges per
/// pair and stops after 100 ms; a thousand exchanges take some tenths of a millisecond.
///
/// # Errors
/// If a pair cannot be compared; returns the error of the first one.
pub fn compare_cores<C: Clock + Sync>(
    clock: &C,
    rate: TickRate,
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
            compare_pair(clock, rate, [cores[core], cores[reference]], exchanges)
        })
        .collect()
}

/// Compares the readings of a clock on two cores, the second of which is the reference; see [`compare_cores`].
///
/// # Errors
/// If the cores are the same, a thread cannot be started or pinned, or the readings are inconsistent.
pub fn compare_pair<C: Clock + Sync>(
    clock: &C,
    rate: TickRate,
    [core, reference]: [CoreId; 2],
    exchanges: u32,
) -> Result<CoreOffset, CoreError> {
    if core == reference {
        return Err(CoreError::SameCore(core));
    }
    let line = PingPongLine::default();
    let estimator = thread::scope(|scope| {
        let asking = Builder::new().spawn_scoped(scope, || {
            let estimator = pin_to(core).and_then(|()| line.ask(clock, rate, exchanges));
            line.quit();
            estimator
        });
        let asking = asking.map_err(|why| CoreError::NoThread(core, why.to_string()))?;
        let answering = Builder::new().spawn_scoped(scope, || {
            pin_to(reference)
                .map(|()| line.answer(clock, exchanges))
                .inspect_err(|_| line.quit())
        });
        let answering = answering.map_err(|why| {
            line.quit();
            CoreError::NoThread(reference, why.to_string())
        })?;
        let (asked, answered) = (asking.join(), answering.join());
        answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let sample = estimator.estimate().map_err(CoreError::Readings)?;
    // Each limit of the interval is the difference of two readings, each up to a step late and rounded to a nanosecond.
    let step = rate.duration(clock.grain()) + Duration::from_nanos(1);
    let half_width = sample.half_width.unwrap_or(Duration::MAX) + step;
    Ok(CoreOffset {
        core,
        reference,
        offset: sample.offset,
        half_width,
    })
}

/// The time of the core that starts the exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Asking;

/// The time of the core that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Answering;

impl Domain for Asking {
    const NAME: &'static str = "asking core";
}
impl Domain for Answering {
    const NAME: &'static str = "answering core";
}

/// The cache line of a ping-pong between two cores.
#[derive(Default)]
#[repr(align(64))]
struct PingPongLine {
    /// Number of messages so far; if odd, it is the answering core's turn.
    messages: AtomicU64,
    /// Last reading of the answering core.
    answer: AtomicU64,
    /// True after a thread has quit. Not encoded in `messages`, which the other thread could overwrite.
    has_quit: AtomicBool,
}

impl PingPongLine {
    fn quit(&self) {
        self.has_quit.store(true, Ordering::Relaxed);
    }

    /// Waits until `messages` reaches a number; returns false if the other thread has quit.
    ///
    /// Spins and never yields: on a busy machine exchanges succeed only while both threads run, and with yields they would
    /// rarely run at the same time.
    fn wait_for(&self, messages: u64) -> bool {
        while self.messages.load(Ordering::Acquire) != messages {
            if self.has_quit.load(Ordering::Relaxed) {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    }

    fn answer(&self, clock: &impl Clock, exchanges: u32) {
        for i in 0..u64::from(exchanges) {
            if !self.wait_for(2 * i + 1) {
                return;
            }
            self.answer.store(clock.ticks().0, Ordering::Relaxed);
            self.messages.store(2 * i + 2, Ordering::Release);
        }
    }

    fn ask(
        &self,
        clock: &impl Clock,
        rate: TickRate,
        exchanges: u32,
    ) -> Result<SkampiOffset<Asking, Answering>, CoreError> {
        // Both cores count time from here.
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
                break;
            }
            let sent = clock.open();
            self.messages.store(2 * i + 1, Ordering::Release);
            if !self.wait_for(2 * i + 2) {
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

    use crate::cores::{allowed_cores, current_core};
    use crate::{SystemClock, SystemClockId};

    /// A clock that is ahead on one core.
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

    /// Returns the first two cores; with a single one there is nothing to compare.
    fn two_cores() -> Option<[CoreId; 2]> {
        allowed_cores().get(..2)?.try_into().ok()
    }

    #[test]
    fn the_offset_of_a_core_is_within_the_error_limit() {
        let Some([reference, core]) = two_cores() else {
            return;
        };
        for ahead in [0, 1_000_000_000] {
            let clock = AheadOn(core, ahead);
            let found = compare_pair(&clock, SystemClock::RATE, [core, reference], 500).unwrap();
            let error = found.offset - Duration::from_nanos(ahead as i64);
            assert!(error.abs() <= found.half_width, "{found:?}");
            // The uncertainty of an exchange between two cores is below a second, even on busy cores.
            assert_eq!(found.may_be_zero(), ahead == 0, "{found:?}");
            assert!(found.bound() >= Duration::from_nanos(ahead as i64));
        }
    }

    /// A clock that runs backwards.
    struct Backwards(AtomicU64);

    impl Clock for Backwards {
        fn ticks(&self) -> Ticks {
            Ticks(self.0.fetch_sub(1, Ordering::Relaxed))
        }
    }

    #[test]
    fn a_clock_that_runs_backwards_ends_the_comparison() {
        let Some(cores) = two_cores() else { return };
        let clock = Backwards(AtomicU64::new(1 << 40));
        let found = compare_pair(&clock, TickRate::NANOSECOND, cores, 10);
        assert!(matches!(
            found,
            Err(CoreError::Readings(FitError::SteppedBack { .. }))
        ));
    }

    #[test]
    fn the_cores_of_the_system_clock_agree() {
        let Some(cores) = two_cores() else { return };
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let found = compare_cores(&raw, SystemClock::RATE, &cores, 500).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].may_be_zero(), "{found:?}");
    }

    #[test]
    fn invalid_comparisons_are_rejected_and_no_thread_waits_forever() {
        let Some([core, other]) = two_cores() else {
            return;
        };
        let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let error = |core, reference, exchanges| {
            compare_pair(&raw, SystemClock::RATE, [core, reference], exchanges).unwrap_err()
        };
        let missing = CoreId(u32::MAX);
        assert_eq!(error(core, core, 10), CoreError::SameCore(core));
        // Repeated, because it depends on which thread comes first.
        for _ in 0..100 {
            assert_eq!(error(core, missing, 10), CoreError::NotAllowed(missing));
            assert_eq!(error(missing, core, 10), CoreError::NotAllowed(missing));
        }
        assert_eq!(
            error(core, other, 0),
            CoreError::Readings(FitError::NoExchanges)
        );
        assert_eq!(
            compare_cores(&raw, SystemClock::RATE, &[core], 10),
            Ok(vec![])
        );
    }
}
