//! Every algorithm over threads whose clocks are wrong in a known way, against the truth: exact, whatever the machine
//! is busy with.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, that is how a failure is told"
)]

mod common;

use common::run;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Ticks, Timestamp};
use downbeat_sync::{
    Algorithm, Comm, CommError, LocalClock, RankPlacement, SyncError, Synchronized,
};
use downbeat_timers::{Skew, SkewedClock, SystemClock, SystemClockId, Truth};

type Skewed = SkewedClock<SystemClock>;

/// Numbers of ranks that meet every remainder of a tree.
const RANKS: [u32; 7] = [1, 2, 3, 4, 5, 7, 8];

const FLAT: [&str; 10] = [
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
];

/// One true clock for all ranks.
fn truth() -> (SystemClock, ClockModel<Counter, Truth>) {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    (
        raw,
        ClockModel::through(raw.ticks(), Timestamp::ORIGIN, SystemClock::RATE).unwrap(),
    )
}

/// Ranks that are ahead by very different amounts, and drift by some parts per million.
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

/// What a rank has, and by how much its global clock is off from that of rank 0 at an instant just after.
struct Outcome {
    result: Result<Synchronized, SyncError>,
    error: Option<i64>,
    took: Duration,
}

fn synchronize(
    label: &str,
    ranks: u32,
    drifting: bool,
    place: fn(u32) -> RankPlacement,
) -> Vec<Outcome> {
    let algorithm: Algorithm = label.parse().unwrap();
    let (raw, model) = truth();
    let found = run(ranks, move |comm| {
        let clock = Skewed::new(raw, model, skew(comm.rank(), drifting)).unwrap();
        let base = Skewed::nominal_model().unwrap();
        let me = LocalClock::new(&clock, base).placement(place(comm.rank()));
        let began = clock.true_now();
        let result = algorithm.synchronize_blocking(&me, comm);
        (result, clock, began)
    });
    let ranks = found.unwrap();
    // Global time is what rank 0 believes.
    let now = ranks
        .iter()
        .map(|(_, clock, _)| clock.true_now())
        .max()
        .unwrap();
    let global = Skewed::nominal_model()
        .unwrap()
        .apply(ranks[0].1.ticks_at(now))
        .as_nanos();
    let outcome =
        |(result, clock, began): &(Result<Synchronized, SyncError>, Skewed, Timestamp<Truth>)| {
            Outcome {
                result: *result,
                error: result
                    .ok()
                    .map(|found| found.model.apply(clock.ticks_at(now)).as_nanos() - global),
                took: now - *began,
            }
        };
    ranks.iter().map(outcome).collect()
}

fn one_place(_: u32) -> RankPlacement {
    RankPlacement::default()
}

/// Tries until the clocks could be fitted: on a busy machine eight points within some microseconds can be so far off that
/// the line through them is no clock's, and a single offset can take so long that drift contradicts it. Then all ranks
/// must fail, and one must say so.
fn synchronize_at_last(
    label: &str,
    ranks: u32,
    drifting: bool,
    place: fn(u32) -> RankPlacement,
) -> Vec<Outcome> {
    for _ in 0..100 {
        let outcomes = synchronize(label, ranks, drifting, place);
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
        let unfit = |why: &SyncError| matches!(why, SyncError::Model(_) | SyncError::Fit(_));
        let other = |why: &SyncError| matches!(why, SyncError::OtherRank(_));
        assert!(
            failures.iter().any(unfit) && failures.iter().all(|why| unfit(why) || other(why)),
            "{failures:?}"
        );
    }
    panic!("{label}: the clocks could not be fitted in 100 tries");
}

/// That clocks which keep their distance are found to within what the algorithm itself calls possible.
///
/// Each offset is off by its half width at most, and so is a line in the middle of its points. From there to now the
/// line is off by its slope, which should be one. The slopes of the lines that a model was composed of are not known
/// one by one; but each is the ratio of the rates of two ranks, and no model was composed of more than `hops`.
fn assert_within_the_half_widths(
    label: &str,
    ranks: u32,
    hops: f64,
    place: fn(u32) -> RankPlacement,
) {
    let outcomes = synchronize_at_last(label, ranks, false, place);
    let steepness =
        |outcome: &Outcome| (outcome.result.unwrap().model.rate().nanos_per_tick() - 1.0).abs();
    let steepest = outcomes.iter().map(steepness).fold(0.0, f64::max);
    for (rank, outcome) in outcomes.iter().enumerate() {
        let (found, error) = (outcome.result.unwrap(), outcome.error.unwrap());
        if rank == 0 {
            assert_eq!(error, 0, "{label}, rank 0 of {ranks}");
            continue;
        }
        // Estimators other than SKaMPI's know no bound; but no exchange takes longer than the whole synchronization.
        let took = outcome.took.as_nanos() as f64;
        let width = found
            .quality
            .half_width
            .map_or(hops * took, |width| width.as_nanos() as f64);
        let most = width + 2.0 * steepest * hops * took + 2.0 * hops;
        assert!(
            error.abs() as f64 <= most,
            "{label}, rank {rank} of {ranks}: {error} ns, at most {most}"
        );
    }
}

#[test]
fn constant_offsets_are_found_to_within_the_half_widths() {
    let estimators = [
        "hca3/8/trace-collector/30",
        "hca3/8/mean-rtt/30",
        "skampi/mean-rtt/9",
        "jk/1/trace-collector/9",
    ];
    for label in FLAT.into_iter().chain(estimators) {
        for ranks in RANKS {
            assert_within_the_half_widths(label, ranks, 4.0, one_place);
        }
    }
}

/// Lines learn the drift; that of offsets is the whole error, and known.
#[test]
fn a_line_learns_the_drift_and_an_offset_does_not() {
    for (label, learns) in [
        ("hca3/10/skampi/50", true),
        ("jk/10/skampi/50", true),
        ("hca3-offset/skampi/50", false),
    ] {
        for (rank, outcome) in synchronize_at_last(label, 4, true, one_place)
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
    // Two sockets per node, and ranks dealt out like cards, as some launchers do.
    let place = |rank: u32| RankPlacement {
        node: rank % 3,
        socket: rank / 3 % 2,
    };
    let labels = [
        "h2hca(hca3/8/skampi/30,skampi/skampi/30)",
        "h2hca(skampi/skampi/30,hca3-offset/skampi/30)",
        "h3hca(jk/8/skampi/30,hca2/8/skampi/30,hca3/8/skampi/30)",
        "h3hca(nbcbench/skampi/30,skampi/skampi/30,hca3-offset/skampi/30)",
    ];
    for label in labels {
        for ranks in [1, 2, 3, 5, 8, 13] {
            assert_within_the_half_widths(label, ranks, 10.0, place);
        }
    }
}

#[test]
fn nodes_that_share_a_clock_need_only_be_told_within() {
    // Ranks of a node are ahead by the same amount, those of another by another.
    let ahead = |rank: u32| Duration::from_secs(i64::from(rank / 2) * 50);
    let place = |rank: u32| RankPlacement {
        node: rank / 2,
        socket: 0,
    };
    let found = on_one_clock(
        6,
        "h2hca(hca3/8/skampi/30,prop)",
        |rank| u64::from(rank / 2),
        ahead,
        place,
    );
    let models: Vec<_> = found.into_iter().map(|rank| rank.unwrap().model).collect();
    assert!(models[0] == models[1] && models[2] == models[3] && models[4] == models[5]);
    assert!(models[0] != models[2] && models[2] != models[4]);

    // The same ranks on one node do not share a clock, and the node's first rank is not to blame.
    let found = on_one_clock(
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

/// Ranks that all read one clock, but for those that are ahead of it.
fn on_one_clock(
    ranks: u32,
    label: &str,
    source: fn(u32) -> u64,
    ahead: fn(u32) -> Duration,
    place: fn(u32) -> RankPlacement,
) -> Vec<Result<Synchronized, SyncError>> {
    let algorithm: Algorithm = label.parse().unwrap();
    let (raw, model) = truth();
    let found = run(ranks, move |comm| {
        let offset = ahead(comm.rank());
        let clock = Skewed::new(
            raw,
            model,
            Skew {
                offset,
                ..Skew::default()
            },
        )
        .unwrap();
        let base = Skewed::nominal_model().unwrap();
        let me = LocalClock::new(&clock, base)
            .source(source(comm.rank()))
            .placement(place(comm.rank()));
        algorithm.synchronize_blocking(&me, comm)
    });
    found.unwrap()
}

#[test]
fn ranks_of_one_source_adopt_the_model_of_the_first() {
    for ranks in RANKS {
        let found = on_one_clock(ranks, "prop", |_| 7, |_| Duration::ZERO, one_place);
        let first = found[0].unwrap().model;
        assert!(found.iter().all(|rank| rank.unwrap().model == first));
    }
}

#[test]
fn a_source_that_only_claims_to_be_the_same_is_refused_on_all_ranks() {
    // As emulated hosts are: one boot id, another CLOCK_MONOTONIC.
    let ahead = |rank| {
        if rank == 2 {
            Duration::from_secs(1_000)
        } else {
            Duration::ZERO
        }
    };
    let found = on_one_clock(4, "prop", |_| 7, ahead, one_place);
    assert!(
        matches!(found[2], Err(SyncError::OtherSource { offset, half_width })
        if (offset - Duration::from_secs(1_000)).abs() <= half_width),
        "{:?}",
        found[2]
    );
    for rank in [0, 1, 3] {
        assert_eq!(found[rank], Err(SyncError::OtherRank(2)));
    }
}

#[test]
fn a_source_of_another_name_is_refused_even_if_it_agrees() {
    let found = on_one_clock(
        3,
        "prop",
        |rank| if rank == 1 { 8 } else { 7 },
        |_| Duration::ZERO,
        one_place,
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
fn clocks_that_are_one_already_are_left_alone() {
    for (rank, outcome) in synchronize("none", 3, false, one_place)
        .into_iter()
        .enumerate()
    {
        let truth = skew(rank as u32, false).offset - skew(0, false).offset;
        assert_eq!(outcome.error, Some(truth.as_nanos()));
    }
}

#[test]
fn ranks_that_are_asked_for_different_algorithms_all_hear_of_it() {
    for ranks in RANKS.into_iter().skip(1) {
        let found = run(ranks, move |comm| {
            let label = if comm.rank() == ranks - 1 {
                "jk/10/skampi/10"
            } else {
                "jk/10/skampi/11"
            };
            let (clock, base) = (truth().0, Skewed::nominal_model().unwrap());
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

/// A clock that steps back by a second at every 50th reading.
struct Stepping(SystemClock, std::cell::Cell<u64>);

impl Clock for Stepping {
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
                    let clock = Stepping(raw, std::cell::Cell::new(0));
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
                matches!(result, Err(SyncError::Fit(_) | SyncError::Model(_)))
            };
            assert!(
                found.iter().any(own),
                "{label}, rank {stepping} of {ranks} steps: {found:?}"
            );
        }
    }
}

#[test]
fn a_rank_that_leaves_ends_it_for_all() {
    for label in FLAT {
        let algorithm: Algorithm = label.parse().unwrap();
        let found = run(4, move |comm| {
            if comm.rank() == 3 {
                return None;
            }
            let (clock, base) = (truth().0, Skewed::nominal_model().unwrap());
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
