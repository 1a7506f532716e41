//! Synchronizations of threads that read one clock, which may step for the last of them.

use core::cell::Cell;

use downbeat_clock_core::{Clock, ClockModel, Duration, Ticks, Timestamp};
use downbeat_sync::{Algorithm, Comm, LocalClock, SyncError, Synchronized, ThreadCluster};
use downbeat_timers::{SystemClock, SystemClockId};
use fastrand::Rng;

/// Clock that steps after a number of readings: so the step is at a known point of the program.
struct SteppingClock {
    clock: SystemClock,
    reads: Cell<u64>,
    after: u64,
    by: i64,
}

impl Clock for SteppingClock {
    fn ticks(&self) -> Ticks {
        let reads = self.reads.replace(self.reads.get() + 1);
        self.at(self.clock.ticks(), reads)
    }
}

impl SteppingClock {
    /// Reading when the counter shows `ticks`.
    fn at(&self, ticks: Ticks, reads: u64) -> Ticks {
        let step = if reads >= self.after { self.by } else { 0 };
        Ticks(ticks.0.wrapping_add_signed(step))
    }
}

pub(crate) struct ThreadResult {
    pub(crate) result: Result<Synchronized, SyncError>,
    pub(crate) reads: u64,
    /// Reading of the clock at the end, at the same instant on all ranks.
    pub(crate) last: Ticks,
}

/// Synchronizes; the clock of the last rank steps by `by` after this number of readings.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn synchronize(
    ranks: u32,
    algorithm: &Algorithm,
    (after, by): (u64, i64),
) -> Vec<ThreadResult> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    let base = ClockModel::through(Ticks(0), Timestamp::ORIGIN, SystemClock::RATE).unwrap();
    let found = ThreadCluster::new(ranks).run(|comm| {
        let clock = SteppingClock {
            clock: raw,
            reads: Cell::new(0),
            after: if comm.rank() == ranks - 1 {
                after
            } else {
                u64::MAX
            },
            by,
        };
        let result = algorithm.synchronize_blocking(&LocalClock::new(&clock, base), comm);
        (result, clock)
    });
    let now = raw.ticks();
    let result = |(result, clock): (_, SteppingClock)| ThreadResult {
        result,
        reads: clock.reads.get(),
        last: clock.at(now, clock.reads.get()),
    };
    found.unwrap().into_iter().map(result).collect()
}

/// No step.
pub(crate) const STEADY: (u64, i64) = (u64::MAX, 0);

/// Returns the number of readings of the last rank before its closing exchange. The algorithm must read its clock equally
/// often each time.
#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn readings_before_closing(ranks: u32, algorithm: &Algorithm) -> u64 {
    let readings = |algorithm| synchronize(ranks, algorithm, STEADY)[ranks as usize - 1].reads;
    readings(algorithm) - readings(&"none".parse().unwrap())
}

/// Draws a step of 10 us to 1 s in either direction, before the closing exchange.
pub(crate) fn random_step(ranks: u32, algorithm: &Algorithm, random: &mut Rng) -> (u64, i64) {
    let size = 10f64.powf(4.0 + 5.0 * random.f64()) as i64;
    let by = if random.bool() { size } else { -size };
    (random.u64(..=readings_before_closing(ranks, algorithm)), by)
}

/// Returns the errors that exceed their stated bound, with the bound; `None` if the synchronization failed.
pub(crate) fn beyond(ranks: &[ThreadResult]) -> Option<Vec<[Duration; 2]>> {
    let shown = |rank: &ThreadResult| Some(rank.result.ok()?.model.apply(rank.last));
    let reference = shown(ranks.first()?)?;
    let mut beyond = Vec::new();
    for rank in ranks {
        let time = shown(rank)?;
        let bound = rank.result.ok()?.bound;
        if !bound.allows(time, reference) {
            beyond.push([time - reference, bound.at_time(time)]);
        }
    }
    Some(beyond)
}
