//! Every algorithm over threads whose clocks have known errors, compared with the truth: exact,
//! independent of the load of the machine.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests report failures by panics"
)]

mod common;

use common::run;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Ticks, Timestamp};
use downbeat_sync::RankPlacement;
use downbeat_sync::{Algorithm, Comm, CommError, LocalClock, SyncError, Synchronized};
use downbeat_timers::skew::{Skew, SkewedClock, Truth};
use downbeat_timers::{SystemClock, SystemClockId};

type WrongClock = SkewedClock<SystemClock>;

/// Numbers of ranks with every shape of a tree.
const RANKS: [u32; 7] = [1, 2, 3, 4, 5, 7, 8];

const FLAT: [&str; 11] = [
    "skampi/skampi/30",
    "nbcbench/skampi/30",
    "jk/8/skampi/30",
    "hca/8/skampi/30",
    "hca2/8/skampi/30",
    "hca3/8/skampi/30",
    "hca3/8/skampi/30/recompute",
    "hca3/8/skampi/30/recompute/weighted",
    "hca3/8/skampi/30/early",
    "hca3-offset/skampi/30",
    "cube/8/30",
];

/// Returns one true clock for all ranks.
fn truth() -> (SystemClock, ClockModel<Counter, Truth>) {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    (
        raw,
        ClockModel::through(raw.ticks(), Timestamp::ORIGIN, SystemClock::RATE).unwrap(),
    )
}

/// Ranks whose offsets differ widely, and whose drifts differ by some parts per million.
fn skew(rank: u32, drifting: bool) -> Skew {
    let rank = i64::from(rank);
    let offset = Duration::from_millis(rank * rank * 700 - 1_000);
    let drift = if drifting {
        (rank * 37 % 11 - 5) as f64 * 1e-6
    } else {
        0.0
    };
    Skew {
        offset,
        drift,
        ..Skew::default()
    }
}

/// Result of a rank, and the error of its global clock relative to that of rank 0 just afterwards,
/// with its stated bound.
struct ThreadOutcome {
    result: Result<Synchronized, SyncError>,
    error: Option<i64>,
    bound: Option<i64>,
}

fn synchronize(
    label: &str,
    ranks: u32,
    drifting: bool,
    placement: fn(u32) -> RankPlacement,
) -> Vec<ThreadOutcome> {
    let algorithm: Algorithm = label.parse().unwrap();
    let (raw, model) = truth();
    let found = run(ranks, move |comm| {
        let clock = WrongClock::new(raw, model, skew(comm.rank(), drifting)).unwrap();
        let base = WrongClock::nominal_model().unwrap();
        let me = LocalClock::new(&clock, base).placement(placement(comm.rank()));
        let result = algorithm.synchronize_blocking(&me, comm);
        (result, clock)
    });
    let ranks = found.unwrap();
    // Global time is the local time of rank 0.
    let now = ranks
        .iter()
        .map(|(_, clock)| clock.true_now())
        .max()
        .unwrap();
    let global = WrongClock::nominal_model()
        .unwrap()
        .apply(ranks[0].1.ticks_at(now))
        .as_nanos();
    let outcome = |(result, clock): &(Result<Synchronized, SyncError>, WrongClock)| {
        let shown = |found: Synchronized| found.model.apply(clock.ticks_at(now));
        ThreadOutcome {
            result: *result,
            error: result.ok().map(|found| shown(found).as_nanos() - global),
            bound: result
                .ok()
                .map(|found| found.bound.at_time(shown(found)).as_nanos()),
        }
    };
    ranks.iter().map(outcome).collect()
}

fn same_placement(_: u32) -> RankPlacement {
    RankPlacement::default()
}

/// Retries until the clocks could be fitted: on a busy machine eight points within some
/// microseconds can be so wrong that the line through them is invalid, and a single offset can take
/// so long that drift contradicts it. Then all ranks must fail, and one must report the cause.
fn synchronize_with_retries(
    label: &str,
    ranks: u32,
    drifting: bool,
    placement: fn(u32) -> RankPlacement,
) -> Vec<ThreadOutcome> {
    for _ in 0..100 {
        let outcomes = synchronize(label, ranks, drifting, placement);
        if outcomes.iter().all(|outcome| outcome.result.is_ok()) {
            return outcomes;
        }
        let failures: Vec<_> = outcomes
            .iter()
            .filter_map(|outcome| outcome.result.err())
            .collect();
        assert_eq!(
            failures.len(),
            outcomes.len(),
            "{label}: some ranks failed and some did not: {failures:?}"
        );
        let is_fit_error =
            |why: &SyncError| matches!(why, SyncError::Model(_) | SyncError::Pair { .. });
        let other = |why: &SyncError| matches!(why, SyncError::OtherRank(_));
        assert!(
            failures.iter().any(is_fit_error)
                && failures.iter().all(|why| is_fit_error(why) || other(why)),
            "{failures:?}"
        );
    }
    panic!("{label}: the clocks could not be fitted in 100 tries");
}

/// Asserts that the clocks, which drift, are right to within the stated bounds.
fn assert_within_the_bounds(label: &str, ranks: u32, placement: fn(u32) -> RankPlacement) {
    let outcomes = synchronize_with_retries(label, ranks, true, placement);
    for (rank, outcome) in outcomes.iter().enumerate() {
        let (error, bound) = (outcome.error.unwrap(), outcome.bound.unwrap());
        assert!(
            error.abs() <= bound,
            "{label}, rank {rank} of {ranks}: {error} ns, at most {bound}"
        );
        assert!(rank > 0 || bound == 0, "rank 0 is global time: {bound}");
    }
}

#[test]
fn clocks_are_right_to_within_the_stated_bounds() {
    let estimators = [
        "hca3/8/trace-collector/30",
        "hca3/8/mean-rtt/30",
        "skampi/mean-rtt/9",
        "jk/1/trace-collector/9",
    ];
    for label in FLAT.into_iter().chain(estimators) {
        for ranks in RANKS {
            assert_within_the_bounds(label, ranks, same_placement);
        }
    }
}

/// Lines learn the drift; for offsets the drift is the whole error, and known.
#[test]
fn a_line_learns_the_drift_and_an_offset_does_not() {
    for (label, learns) in [
        ("hca3/10/skampi/50", true),
        ("jk/10/skampi/50", true),
        ("cube/10/50", true),
        ("hca3-offset/skampi/50", false),
    ] {
        for (rank, outcome) in synchronize_with_retries(label, 4, true, same_placement)
            .into_iter()
            .enumerate()
        {
            let rate = outcome.result.unwrap().model.rate().nanos_per_tick();
            assert_eq!(
                (rate - 1.0).abs() > 1e-12,
                learns && rank > 0,
                "{label}, rank {rank}: {rate}"
            );
        }
    }
}

#[test]
fn a_hierarchy_synchronizes_nodes_first_and_then_the_ranks_within() {
    // Two sockets per node, and ranks assigned to nodes round-robin, as some launchers do.
    let placement = |rank: u32| RankPlacement {
        island: rank % 2,
        rack: rank / 2 % 2,
        numa: rank / 6 % 2,
        ..RankPlacement::new(rank % 3, rank / 3 % 2)
    };
    let labels = [
        "h2hca(hca3/8/skampi/30,skampi/skampi/30)",
        "h2hca(skampi/skampi/30,hca3-offset/skampi/30)",
        "h3hca(jk/8/skampi/30,hca2/8/skampi/30,hca3/8/skampi/30)",
        "h3hca(nbcbench/skampi/30,skampi/skampi/30,hca3-offset/skampi/30)",
        "hlhca(island=cube/8/30,rack=hca3/8/skampi/30,node=skampi,socket=cube/8/30,numa=hca2/8/skampi/30,rank=skampi)",
        "hlhca(rack=cube/8/30,numa=cube/8/30,rank=skampi)",
    ];
    for label in labels {
        for ranks in [1, 2, 3, 5, 8, 13] {
            assert_within_the_bounds(label, ranks, placement);
        }
    }
}

/// The first rank of a node learns between the nodes and teaches within its own.
#[test]
fn the_first_rank_of_a_node_keeps_the_quality_of_its_own_line() {
    let placement = |rank: u32| RankPlacement::new(rank / 2, 0);
    for ranks in ["jk", "hca", "hca2", "hca3"] {
        let label = format!("h2hca(hca3/8/skampi/30,{ranks}/8/skampi/30)");
        let outcomes = synchronize_with_retries(&label, 4, true, placement);
        let quality = outcomes[2].result.unwrap().quality;
        assert!(quality.residual_deviation.is_some(), "{label}: {quality:?}");
    }
}

#[test]
fn ranks_of_a_node_with_one_clock_adopt_one_model() {
    // The ranks of a node have the same offset; other nodes have others.
    let ahead = |rank: u32| Duration::from_secs(i64::from(rank / 2) * 50);
    let placement = |rank: u32| RankPlacement::new(rank / 2, 0);
    let found = synchronize_one_clock(
        6,
        "h2hca(hca3/8/skampi/30,prop)",
        |rank| u64::from(rank / 2),
        ahead,
        placement,
    );
    let models: Vec<_> = found.into_iter().map(|rank| rank.unwrap().model).collect();
    assert!(models[0] == models[1] && models[2] == models[3] && models[4] == models[5]);
    assert!(models[0] != models[2] && models[2] != models[4]);

    // The same ranks on one node do not share a clock, and the node's first rank does not fail.
    let found = synchronize_one_clock(
        6,
        "h2hca(hca3/8/skampi/30,prop)",
        |_| 7,
        ahead,
        |_| RankPlacement::default(),
    );
    assert!(
        matches!(found[2], Err(SyncError::OtherSource { .. })),
        "{:?}",
        found[2]
    );
    assert_eq!(found[0], Err(SyncError::OtherRank(2)));
}

/// Ranks that all read one clock, except those that are ahead of it.
fn synchronize_one_clock(
    ranks: u32,
    label: &str,
    source: fn(u32) -> u64,
    ahead: fn(u32) -> Duration,
    placement: fn(u32) -> RankPlacement,
) -> Vec<Result<Synchronized, SyncError>> {
    let algorithm: Algorithm = label.parse().unwrap();
    let (raw, model) = truth();
    let found = run(ranks, move |comm| {
        let offset = ahead(comm.rank());
        let clock = WrongClock::new(
            raw,
            model,
            Skew {
                offset,
                ..Skew::default()
            },
        )
        .unwrap();
        let base = WrongClock::nominal_model().unwrap();
        let me = LocalClock::new(&clock, base)
            .source(source(comm.rank()))
            .placement(placement(comm.rank()));
        algorithm.synchronize_blocking(&me, comm)
    });
    found.unwrap()
}

#[test]
fn ranks_of_one_source_adopt_the_model_of_the_first() {
    for ranks in RANKS {
        let found = synchronize_one_clock(ranks, "prop", |_| 7, |_| Duration::ZERO, same_placement);
        let first = found[0].unwrap().model;
        assert!(found.iter().all(|rank| rank.unwrap().model == first));
    }
}

#[test]
fn different_clocks_with_the_same_source_fail_on_all_ranks() {
    // Like emulated hosts, which share a boot id but not CLOCK_MONOTONIC.
    let ahead = |rank| {
        if rank == 2 {
            Duration::from_secs(1_000)
        } else {
            Duration::ZERO
        }
    };
    let found = synchronize_one_clock(4, "prop", |_| 7, ahead, same_placement);
    assert!(
        matches!(found[2], Err(SyncError::OtherSource { offset, half_width, .. })
        if (offset - Duration::from_secs(1_000)).abs() <= half_width),
        "{:?}",
        found[2]
    );
    for rank in [0, 1, 3] {
        assert_eq!(found[rank], Err(SyncError::OtherRank(2)));
    }
}

#[test]
fn different_sources_are_refused_even_if_their_clocks_agree() {
    let found = synchronize_one_clock(
        3,
        "prop",
        |rank| if rank == 1 { 8 } else { 7 },
        |_| Duration::ZERO,
        same_placement,
    );
    assert!(
        matches!(found[1], Err(SyncError::OtherSource { .. })),
        "{:?}",
        found[1]
    );
    assert_eq!(
        (found[0], found[2]),
        (Err(SyncError::OtherRank(1)), Err(SyncError::OtherRank(1)))
    );
}

#[test]
fn the_algorithm_none_changes_no_clock() {
    for (rank, outcome) in synchronize("none", 3, false, same_placement)
        .into_iter()
        .enumerate()
    {
        let truth = skew(rank as u32, false).offset - skew(0, false).offset;
        assert_eq!(outcome.error, Some(truth.as_nanos()));
    }
}

#[test]
fn different_algorithms_are_an_error_on_all_ranks() {
    for ranks in RANKS.into_iter().skip(1) {
        let found = run(ranks, move |comm| {
            let label = if comm.rank() == ranks - 1 {
                "jk/10/skampi/10"
            } else {
                "jk/10/skampi/11"
            };
            let (clock, base) = (truth().0, WrongClock::nominal_model().unwrap());
            let me = LocalClock::new(&clock, base);
            label
                .parse::<Algorithm>()
                .unwrap()
                .synchronize_blocking(&me, comm)
        });
        assert!(
            found
                .unwrap()
                .into_iter()
                .all(|rank| rank == Err(SyncError::DifferentAlgorithms)),
            "{ranks} ranks"
        );
    }
}

/// Clock that steps back by a second at every 50th reading.
struct SteppingClock(SystemClock, std::cell::Cell<u64>);

impl Clock for SteppingClock {
    fn ticks(&self) -> Ticks {
        let reads = self.1.replace(self.1.get() + 1);
        Ticks(self.0.ticks().0 - reads / 50 * 1_000_000_000)
    }
}

#[test]
fn a_clock_that_steps_during_a_synchronization_fails_it_on_all_ranks() {
    let labels = [
        "hca/9/skampi/20",
        "hca2/9/mean-rtt/20",
        "hca3/9/trace-collector/20",
        "jk/9/skampi/20",
        "nbcbench/skampi/90",
    ];
    for label in labels {
        let algorithm: Algorithm = label.parse().unwrap();
        for (ranks, stepping) in [(2, 1), (5, 4), (8, 3), (8, 0)] {
            let found = run(ranks, move |comm| {
                let raw = truth().0;
                let base =
                    ClockModel::through(raw.ticks(), Timestamp::ORIGIN, SystemClock::RATE).unwrap();
                if comm.rank() == stepping {
                    let clock = SteppingClock(raw, std::cell::Cell::new(0));
                    return algorithm.synchronize_blocking(&LocalClock::new(&clock, base), comm);
                }
                algorithm.synchronize_blocking(&LocalClock::new(&raw, base), comm)
            });
            let found = found.unwrap();
            assert!(
                found.iter().all(Result::is_err),
                "{label}, rank {stepping} of {ranks} steps: {found:?}"
            );
            let own = |result: &Result<_, SyncError>| {
                matches!(result, Err(SyncError::Pair { .. } | SyncError::Model(_)))
            };
            assert!(
                found.iter().any(own),
                "{label}, rank {stepping} of {ranks} steps: {found:?}"
            );
        }
    }
}

#[test]
fn a_rank_that_leaves_fails_the_synchronization_on_all_ranks() {
    for label in FLAT {
        let algorithm: Algorithm = label.parse().unwrap();
        let found = run(4, move |comm| {
            if comm.rank() == 3 {
                return None;
            }
            let (clock, base) = (truth().0, WrongClock::nominal_model().unwrap());
            let me = LocalClock::new(&clock, base);
            Some(algorithm.synchronize_blocking(&me, comm))
        });
        for result in found.unwrap().into_iter().flatten() {
            assert!(
                matches!(result, Err(SyncError::Comm(CommError::Left { .. }))),
                "{label}: {result:?}"
            );
        }
    }
}
