//! Agreement of the counters of the cores on which the ranks run: true errors are as
//! certain as that.

use std::num::NonZeroU32;
use std::thread;

use downbeat::LocalTime;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, TickRate, Timestamp};
use downbeat_common::Failure;
use downbeat_common::output::time;
use downbeat_sync::check::{AccuracyCheck, RankSample};
use downbeat_sync::{Comm, OffsetAlgorithm, SyncError, block_on_ready, collective};
use downbeat_timers::MachineClock;
use downbeat_timers::cores::{
    CoreId, CoreOffset, allow_cores, allowed_cores, compare_cores, current_core,
};

use crate::Job;
use crate::ranks::JobRanks;

/// Differences between the counters of cores, as rank 0 knows them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CounterAgreement {
    /// Largest difference between any two cores, if they could be compared.
    pub(crate) within: Option<Duration>,
    pub(crate) swapped: Option<SwappedCores>,
}

/// Offset of rank 1 to rank 0 by messages, on their cores and on each other's: a
/// difference of the counters changes its sign, an error of the method does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwappedCores {
    /// Difference of the counters, in nanoseconds.
    pub(crate) counters: f64,
    /// Error of the method, in nanoseconds.
    pub(crate) method: f64,
    /// Standard error of both, in nanoseconds.
    pub(crate) error: f64,
}

/// Number of exchanges between two cores.
const EXCHANGES: u32 = 1_000;
/// Time that two cores take for them.
const OF_A_PAIR: Duration = Duration::from_millis(5);
/// Measurements with each placement of the two ranks.
const TURNS: usize = 6;
/// Offset algorithm of these measurements, and the time that all of them take.
const BY: OffsetAlgorithm = OffsetAlgorithm::skampi(NonZeroU32::new(300).unwrap());
const OF_ALL_TURNS: Duration = Duration::from_millis(20);

impl CounterAgreement {
    /// Compares the counters of all cores on which the ranks run; what is not on rank 0
    /// is the default. All ranks call this.
    pub(crate) fn measure<J: Job>(
        ranks: &JobRanks<'_, J>,
        counter: &LocalTime,
    ) -> Result<Self, Failure> {
        let (clock, rate) = (&counter.clock, counter.model.rate());
        let within = compare_all(ranks, clock, rate);
        block_on_ready(collective::barrier(ranks.all))?;
        let pair = ranks
            .all
            .split((ranks.all.rank() < 2).then_some(0), ranks.all.rank());
        let pair = block_on_ready(pair).map_err(Failure::run)?;
        let swapped = match pair.filter(|pair| pair.size() == 2) {
            Some(pair) => block_on_ready(swap(&pair, clock, rate)).map_err(Failure::run)?,
            None => {
                rest(OF_ALL_TURNS);
                None
            }
        };
        block_on_ready(collective::barrier(ranks.all))?;
        Ok(Self { within, swapped })
    }

    /// Describes the agreement in some sentences.
    pub(crate) fn describe(&self) -> String {
        let certain = self.within.map_or_else(
            || "the counters of the cores could not be compared".to_owned(),
            |within| {
                let within = time(within.as_nanos() as f64);
                format!(
                    "certain to {within}, as messages between cores do not show smaller differences"
                )
            },
        );
        let swapped = self.swapped.map_or_else(String::new, |found| {
            let [counters, method, error] =
                [found.counters.abs(), found.method.abs(), found.error].map(time);
            format!(
                " Ranks 0 and 1 swapped their cores to see more: their counters differ by {counters}, and offsets that {BY} measures are \
                 wrong by {method} (standard error of both {error})."
            )
        });
        format!("True errors: differences of the counters of two cores, {certain}.{swapped}")
    }
}

/// Compares the counters of all cores of the job on rank 0, while the other ranks leave
/// their cores.
fn compare_all<J: Job>(
    ranks: &JobRanks<'_, J>,
    clock: &MachineClock,
    rate: TickRate,
) -> Option<Duration> {
    let cores = ranks.all_cores();
    if !ranks.is_first() {
        let pairs = ranks.all.size().saturating_sub(1).max(1);
        rest(OF_A_PAIR * i64::from(pairs));
        return None;
    }
    // A launcher may have given this rank one core.
    let before = allowed_cores();
    let _ = allow_cores(&cores);
    let found = compare_cores(clock, rate, &cores, EXCHANGES);
    let _ = allow_cores(&before);
    found.ok()?.iter().map(CoreOffset::bound).max()
}

/// Sleeps: a rank that waits for a message occupies its core.
fn rest(time: Duration) {
    thread::sleep(std::time::Duration::from_nanos(
        time.as_nanos().unsigned_abs(),
    ));
}

/// Measures the offset of two ranks on their cores and on each other's, in turns. Rank 0
/// gets the result, if both have a core of their own and may run on the other's.
async fn swap(
    pair: &impl Comm,
    clock: &MachineClock,
    rate: TickRate,
) -> Result<Option<SwappedCores>, SyncError> {
    let (me, before) = (pair.rank(), allowed_cores());
    let own = current_core().map_or(u64::MAX, |core| core.0.into());
    pair.send(1 - me, own).await?;
    let other: u64 = pair.recv(1 - me).await?;
    let cores = [own, other].map(|core| u32::try_from(core).ok().map(CoreId));
    let ([Some(own), Some(other)], false) = (cores, own == other) else {
        return Ok(None);
    };
    let model = ClockModel::<Counter, Global>::through(clock.ticks(), Timestamp::ORIGIN, rate);
    let model = collective::broadcast(pair, model?).await?;
    let check = AccuracyCheck {
        offset: BY,
        ranks: RankSample::ALL,
    };
    let mut offsets = [Vec::new(), Vec::new()];
    for turn in 0..2 * TURNS {
        // In the order 0 1 1 0, so that a drift cancels.
        let placement = turn.div_ceil(2) % 2;
        let moved = allow_cores(&[[own, other][placement]]);
        if !collective::all_equal(pair, u64::from(moved.is_ok())).await? || moved.is_err() {
            break;
        }
        let measured = check.measure(clock, model, pair).await?;
        let sample = measured.first().and_then(|found| found.sample);
        offsets[placement].extend(sample.map(|sample| sample.offset.as_nanos() as f64));
    }
    // It could do so before.
    let _ = allow_cores(&before);
    Ok(SwappedCores::of(&offsets))
}

impl SwappedCores {
    /// Returns the figures of offsets on the ranks' own cores and on each other's; `None`
    /// unless there are some of each.
    fn of(offsets: &[Vec<f64>; 2]) -> Option<Self> {
        let [own, other] = offsets.each_ref().map(|values| mean_and_error(values));
        let ((own, of_own), (other, of_other)) = (own?, other?);
        Some(Self {
            counters: (own - other) / 2.0,
            method: f64::midpoint(own, other),
            error: of_own.hypot(of_other) / 2.0,
        })
    }
}

/// Returns the mean of at least two values and its standard error.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (count - 1.0) / count).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_counters_changes_its_sign() {
        // Counters 10 ns apart, and a method that is 3 ns wrong.
        let found = SwappedCores::of(&[vec![12.0, 14.0], vec![-7.0, -7.0]]).unwrap();
        assert_eq!(
            (found.counters, found.method, found.error),
            (10.0, 3.0, 0.5)
        );
        assert!(SwappedCores::of(&[vec![1.0, 2.0], vec![1.0]]).is_none());
    }
}
