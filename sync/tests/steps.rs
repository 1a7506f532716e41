//! Clocks that step before the closing exchange: the synchronization fails, or its stated bounds
//! hold nevertheless. Stated bounds of clocks that do not step.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

mod common;
#[path = "common/stepping.rs"]
mod stepping;

use core::cell::Cell;

use common::run;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, FitError, Local, Ticks, Timestamp,
};
use downbeat_sync::{
    Algorithm, Clocks, Comm, LocalClock, Network, SimCluster, SyncError, Synchronized,
};
use downbeat_timers::{SystemClock, SystemClockId};
use fastrand::Rng;
use stepping::{StatedError, errors_with_step, errors_without_step};

const LABELS: [&str; 12] = [
    "none",
    "skampi/mean-rtt/5",
    "nbcbench/skampi/5",
    "jk/8/skampi/5",
    "jk/8/mean-rtt/5",
    "hca/8/skampi/5",
    "hca2/8/skampi/5/recompute/weighted",
    "hca3/2/skampi/5",
    "hca3/8/skampi/12/early",
    "hca3/8/trace-collector/5",
    "hca3-offset/mean-rtt/5",
    "h2hca(hca3/8/skampi/5,prop)",
];

fn cluster(ranks: u32, ranks_per_node: u32, seed: u64) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node,
        sockets_per_node: 1,
        network: Network::typical(),
        clocks: Clocks::typical(),
        seed,
    }
}

#[test]
fn simulated_clocks_that_step_fail_or_stay_within_their_bounds() {
    for (ranks, seeds) in [(2, 40), (4, 20), (5, 20), (64, 3)] {
        for label in LABELS {
            let algorithm: Algorithm = label.parse().unwrap();
            for seed in 0..seeds {
                let cluster = cluster(ranks, 1 + u32::from(label.starts_with("h2hca")), seed);
                let (step, found) = errors_with_step(&cluster, &algorithm);
                let beyond: Vec<_> = found
                    .into_iter()
                    .flatten()
                    .filter(StatedError::is_beyond)
                    .collect();
                assert!(
                    beyond.is_empty(),
                    "{label}, {ranks} ranks, {step:?}: {beyond:?}"
                );
            }
        }
    }
}

/// Algorithms that read the clock equally often each time.
fn steady_labels() -> impl Iterator<Item = &'static str> {
    LABELS.into_iter().filter(|label| !label.contains("early"))
}

/// Rank 1 steps by a second after half of its readings, or after its last offset.
#[test]
fn a_step_is_a_failure_that_names_the_pair() {
    for label in steady_labels().filter(|label| *label != "none") {
        let algorithm: Algorithm = label.parse().unwrap();
        let sound = on_threads(algorithm, u64::MAX, 0);
        let [before, all] =
            [on_threads("none".parse().unwrap(), u64::MAX, 0), sound].map(|ranks| ranks[1].reads);
        for after in [(all - before) / 2, all - before] {
            let results: Vec<_> = on_threads(algorithm, after, 1_000_000_000)
                .into_iter()
                .map(|rank| rank.result.map(|found| (found.bound, found.quality)))
                .collect();
            // `prop` finds that the ranks do not share a clock.
            let named = |result: &Result<_, SyncError>| {
                matches!(
                    result,
                    Err(SyncError::Pair {
                        reference: 0,
                        why: FitError::Stepped { .. }
                            | FitError::OffLine { .. }
                            | FitError::Drifted { .. }
                    })
                )
            };
            assert!(
                named(&results[1]) || label.contains("prop"),
                "{label}, after {after} readings of {all}: {results:?}"
            );
            assert_eq!(results[0], Err(SyncError::OtherRank(1)), "{label}");
        }
    }
}

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

struct ThreadResult {
    result: Result<Synchronized, SyncError>,
    reads: u64,
    /// Offset of the clock at the end.
    stepped: i64,
}

/// Synchronizes two threads that read one clock, which steps for the second.
fn on_threads(algorithm: Algorithm, after: u64, by: i64) -> Vec<ThreadResult> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    let base = base();
    let found = run(2, move |comm| {
        let clock = SteppingClock {
            clock: raw,
            reads: Cell::new(0),
            after: if comm.rank() == 1 { after } else { u64::MAX },
            by,
        };
        let result = algorithm.synchronize_blocking(&LocalClock::new(&clock, base), comm);
        let reads = clock.reads.get();
        let stepped = clock.at(Ticks(0), reads).0 as i64;
        ThreadResult {
            result,
            reads,
            stepped,
        }
    });
    found.unwrap()
}

fn base() -> ClockModel<Counter, Local> {
    ClockModel::through(Ticks(0), Timestamp::ORIGIN, SystemClock::RATE).unwrap()
}

#[test]
fn clocks_of_threads_that_step_fail_or_stay_within_their_bounds() {
    let mut random = Rng::with_seed(1);
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    let closing = on_threads("none".parse().unwrap(), u64::MAX, 0)[1].reads;
    for label in steady_labels() {
        let algorithm: Algorithm = label.parse().unwrap();
        for _ in 0..8 {
            let all = on_threads(algorithm, u64::MAX, 0)[1].reads;
            let size = 10f64.powf(4.0 + 5.0 * random.f64()) as i64;
            let by = if random.bool() { size } else { -size };
            let ranks = on_threads(algorithm, random.u64(..=all - closing), by);
            let now = raw.ticks();
            let shown = |rank: &ThreadResult| {
                let model = rank.result.ok()?.model;
                Some(model.apply(Ticks(now.0.wrapping_add_signed(rank.stepped))))
            };
            if let (Some(first), Some(second)) = (shown(&ranks[0]), shown(&ranks[1])) {
                let bound = ranks[1].result.unwrap().bound.at_time(second);
                let error = (second - first).abs();
                assert!(error <= bound, "{label}, {by} ns: {error}, at most {bound}");
            }
        }
    }
}

/// The least bound is half of the round trips on the path, and the declared drift.
#[test]
fn bounds_hold_and_are_at_most_twice_the_least_possible() {
    for (ranks, label) in [
        (64, "jk/8/skampi/5"),
        (64, "skampi/skampi/5"),
        (256, "hca/8/skampi/5"),
        (512, "hca2/8/skampi/5"),
        (512, "hca3/8/mean-rtt/5"),
        (520, "h2hca(hca3/8/skampi/5,prop)"),
    ] {
        for seed in 0..2 {
            let cluster = cluster(ranks, 8, seed);
            let found = errors_without_step(&cluster, &label.parse().unwrap());
            let beyond: Vec<_> = found.iter().filter(|rank| rank.is_beyond()).collect();
            assert!(beyond.is_empty(), "{label}, {ranks} ranks: {beyond:?}");
            let wide = found
                .iter()
                .filter(|rank| rank.bound > rank.least + rank.least);
            let wide = wide.count();
            assert!(wide <= found.len() / 2, "{label}: {wide} of {ranks} ranks");
            assert_eq!(found[0].bound, Duration::ZERO);
        }
    }
}
