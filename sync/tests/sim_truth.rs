//! Every algorithm compared with the truth, on a network without noise: the remaining errors are
//! rounding, and effects that an algorithm ignores.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[path = "common/simulated.rs"]
mod simulated;

use downbeat_clock_core::{Duration, Timestamp};
use downbeat_sync::sim::{Clocks, Drift, Network, NetworkLink, VirtualTime};
use simulated::{SimOutcome, cluster, synchronize};

const RANKS: [u32; 7] = [1, 2, 3, 5, 8, 13, 64];

/// Fit points and exchanges of the labels.
const POINTS: f64 = 20.0;
const EXCHANGES: f64 = 10.0;

const LATENCY: Duration = Duration::from_micros(20);

/// Maximum drift of a clock, in either direction.
const DRIFT: f64 = 10e-6;

fn clocks() -> Clocks {
    Clocks {
        offset: Duration::from_secs(1),
        drift: Drift::Within(DRIFT),
        ..Clocks::perfect()
    }
}

fn network() -> Network {
    Network {
        switch: NetworkLink::steady(LATENCY),
        ..Network::noiseless()
    }
}

/// Returns the number of hops from a rank to rank 0 in a tree.
fn depth(rank: u32, ranks: u32) -> f64 {
    let inside = 1 << ranks.ilog2();
    f64::from(if rank < inside {
        rank.count_ones()
    } else {
        (rank - inside).count_ones() + 1
    })
}

/// Returns the error of each rank's global clock at a true time. Global time is the local time of
/// rank 0.
fn errors(outcomes: &[SimOutcome], at: Timestamp<VirtualTime>) -> Vec<f64> {
    let shown = |outcome: &SimOutcome| {
        outcome
            .result
            .unwrap()
            .model
            .apply(outcome.clock.ticks_at(at))
    };
    let global = shown(&outcomes[0]);
    outcomes
        .iter()
        .map(|outcome| (shown(outcome) - global).as_nanos() as f64)
        .collect()
}

fn end(outcomes: &[SimOutcome]) -> Timestamp<VirtualTime> {
    outcomes.iter().map(|outcome| outcome.done).max().unwrap()
}

/// Readings and messages are whole nanoseconds, so an offset is off by up to 1.5: half for each of
/// two readings, half for the middle of an interval, which is rounded. The points of a line span
/// `span`, and the slope is worst if the offsets of one half are too large and those of the other
/// too small: off by `3 * 1.5 / span`. This is for one hop, and for the time since the middle of
/// the line.
fn rounding_after(since: f64, span: f64) -> f64 {
    2.0 + 4.5 * since / span
}

/// Returns the time span of a line of a tree. Those of Jones and Koenig span more.
fn span() -> f64 {
    (POINTS - 1.0) * EXCHANGES * 2.0 * LATENCY.as_nanos() as f64
}

#[test]
fn lines_are_correct_to_two_nanoseconds_per_hop_and_extrapolate_within_their_span() {
    let labels = [
        "jk/20/skampi/10",
        "hca/20/skampi/10",
        "hca2/20/skampi/10",
        "hca3/20/skampi/10",
        "hca3/20/skampi/10/recompute",
    ];
    for label in labels {
        for ranks in RANKS {
            for seed in 0..3 {
                let outcomes = synchronize(&cluster(ranks, network(), clocks(), seed), label);
                let end = end(&outcomes);
                let (now, later) = (
                    errors(&outcomes, end),
                    errors(&outcomes, end + Duration::from_secs(1)),
                );
                for (rank, (now, later)) in (0..).zip(now.into_iter().zip(later)) {
                    let hops = depth(rank, ranks);
                    // Lines of a tree are extrapolated over one span per following round, those of
                    // HCA while offsets are measured again; by the slope's standard error, 0.45 ns
                    // / sqrt(20) * sqrt(12) / span, that is less than half a nanosecond each.
                    let rounds = if rank == 0 || label.starts_with("jk") {
                        0
                    } else {
                        ranks.ilog2()
                    };
                    let most = 2.0 * hops + f64::from(rounds);
                    assert!(
                        now.abs() <= most,
                        "{label}, rank {rank} of {ranks}, seed {seed}: {now} ns"
                    );
                    let most = hops * rounding_after(1e9, span());
                    assert!(
                        later.abs() <= most,
                        "{label}, rank {rank} of {ranks}, seed {seed}: {later} ns later"
                    );
                }
            }
        }
    }
}

/// The two clocks of a hop drift apart by at most the sum of their drifts, from the beginning at
/// the earliest.
#[test]
fn offsets_are_correct_to_two_nanoseconds_per_hop_and_the_ignored_drift() {
    let labels = [
        "skampi/skampi/10",
        "skampi/mean-rtt/10",
        "skampi/trace-collector/10",
        "nbcbench/skampi/10",
        "hca3-offset/skampi/10",
        "hca3-offset/mean-rtt/10",
    ];
    for label in labels {
        for ranks in RANKS {
            let outcomes = synchronize(&cluster(ranks, network(), clocks(), 1), label);
            for late in [0, 1_000_000_000].map(Duration::from_nanos) {
                let at = end(&outcomes) + late;
                for (rank, error) in (0..).zip(errors(&outcomes, at)) {
                    let most = depth(rank, ranks) * (2.0 + 2.0 * DRIFT * at.as_nanos() as f64);
                    assert!(
                        error.abs() <= most,
                        "{label}, rank {rank} of {ranks}: {error} ns, at most {most}"
                    );
                }
            }
        }
    }
}

/// Without drift, offsets are exact, no matter how long a client waits for its reference.
#[test]
fn without_drift_every_offset_is_correct_to_two_nanoseconds_per_hop() {
    let clocks = Clocks {
        drift: Drift::Within(0.0),
        ..clocks()
    };
    for label in [
        "skampi/mean-rtt/5",
        "nbcbench/trace-collector/5",
        "hca3-offset/mean-rtt/5",
        "hca3/5/mean-rtt/5",
    ] {
        let outcomes = synchronize(&cluster(13, network(), clocks.clone(), 3), label);
        for (rank, error) in (0..).zip(errors(&outcomes, end(&outcomes))) {
            assert!(
                error.abs() <= 2.0 * depth(rank, 13),
                "{label}, rank {rank}: {error} ns"
            );
        }
    }
}

/// As lines of a tree, whose turns take the longer the more dimensions there are; averaging around cycles helps, but a rank may have a
/// single edge.
#[test]
fn a_cube_of_any_number_of_ranks_is_correct_to_rounding() {
    let most_ranks = if cfg!(debug_assertions) { 65 } else { 257 };
    for ranks in 1_u32..=most_ranks {
        let outcomes = synchronize(&cluster(ranks, network(), clocks(), 1), "cube/5/4");
        let end = end(&outcomes);
        let dimensions = f64::from(u32::BITS - (ranks - 1).leading_zeros());
        let turn = dimensions.max(1.0) * 4.0 * 2.0 * LATENCY.as_nanos() as f64;
        let closing = outcomes
            .iter()
            .map(|outcome| outcome.result.unwrap().closing.took);
        let closing = closing.max().unwrap().as_nanos() as f64;
        for late in [0, 10] {
            let late = Duration::from_millis(late);
            let since = 3.0 * turn + closing + late.as_nanos() as f64;
            let most = rounding_after(since, 4.0 * turn);
            for (rank, error) in (0..).zip(errors(&outcomes, end + late)) {
                assert!(
                    error.abs() <= most,
                    "rank {rank} of {ranks}, {late} later: {error} ns, at most {most}"
                );
            }
        }
    }
}

#[test]
fn errors_of_the_levels_of_a_hierarchy_add_up() {
    let label = "h3hca(hca3/20/skampi/10,hca2/20/skampi/10,prop)";
    let mut cluster = cluster(64, network(), clocks(), 1);
    (cluster.ranks_per_node, cluster.sockets_per_node) = (8, 2);
    let outcomes = synchronize(&cluster, label);
    // Before clocks are compared at the end, during which the short lines within the
    // nodes grow inaccurate.
    let closing = outcomes[0].result.unwrap().closing;
    let errors = errors(&outcomes, end(&outcomes) - closing.took - closing.compared);
    for (rank, error) in (0..).zip(&errors) {
        // Eight nodes, then two sockets that read the same clock but measure it, then `prop` within
        // the sockets.
        let hops = depth(rank / 8, 8) + f64::from(rank % 8 / 4);
        assert!(error.abs() <= 2.0 * hops, "rank {rank}: {error} ns");
        assert_eq!(*error, errors[rank as usize / 4 * 4]);
    }
}
