//! Clocks that step before the closing exchange: the synchronization fails, or its stated bounds
//! hold nevertheless. Stated bounds of clocks that do not step.

#[path = "common/adversarial.rs"]
mod adversarial;
#[path = "common/narrowest.rs"]
mod narrowest;
#[path = "common/stepping.rs"]
mod stepping;
#[path = "common/thread_steps.rs"]
mod thread_steps;

use downbeat_clock_core::{Duration, FitError};
use downbeat_sync::sim::{Clocks, Network, SimCluster};
use downbeat_sync::{Algorithm, SyncError};
use fastrand::Rng;
use stepping::{StatedError, errors_with_step, errors_without_step};
use thread_steps::{beyond, random_step, readings_before_closing};

const LABELS: [&str; 14] = [
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
    "cube/6/4",
    "h2hca(cube/4/4,prop)",
    "h2hca(hca3/8/skampi/5,prop)",
];

fn cluster(ranks: u32, ranks_per_node: u32, seed: u64) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node,
        sockets_per_node: 1,
        nodes_per_rack: None,
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

/// Rank 1 steps after half of its readings, or after its last offset: by more than a thread may wait for a core, which would hide
/// the step in a round trip.
#[test]
fn a_step_is_a_failure_that_names_the_pair() {
    for label in steady_labels().filter(|label| *label != "none") {
        let algorithm: Algorithm = label.parse().unwrap();
        let all = readings_before_closing(2, &algorithm);
        for after in [all / 2, all] {
            const STEP: i64 = 1_000_000_000_000;
            let results: Vec<_> = thread_steps::synchronize(2, &algorithm, (after, STEP))
                .into_iter()
                .map(|rank| rank.result.map(|found| found.bound))
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

#[test]
fn clocks_of_threads_that_step_fail_or_stay_within_their_bounds() {
    let mut random = Rng::with_seed(1);
    for label in steady_labels() {
        let algorithm: Algorithm = label.parse().unwrap();
        for ranks in [2, 2, 2, 2, 3, 4] {
            let step = random_step(ranks, &algorithm, &mut random);
            let beyond = beyond(&thread_steps::synchronize(ranks, &algorithm, step));
            let beyond = beyond.unwrap_or_default();
            assert!(beyond.is_empty(), "{label}, {step:?}: {beyond:?}");
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

/// The oracle knows all messages and readings of the closing exchange.
#[test]
fn intervals_hold_on_adversarial_networks_and_are_hardly_wider_than_messages_allow() {
    for (ranks, seeds) in [(2, 20), (5, 20), (17, 10), (64, 2)] {
        for label in [
            "none",
            "hca3/8/skampi/5",
            "cube/4/8",
            "h2hca(cube/4/4,prop)",
        ] {
            let algorithm: Algorithm = label.parse().unwrap();
            for seed in 0..seeds {
                let cluster = adversarial::cluster(ranks, seed);
                let found = adversarial::intervals(&cluster, &algorithm, false).unwrap();
                for rank in found {
                    assert!(rank.is_sound(), "{label}, {ranks} ranks, {seed}: {rank:?}");
                    assert!(
                        rank.relative_width() <= 1.5,
                        "{label}, {ranks} ranks, {seed}: {rank:?}"
                    );
                }
            }
        }
    }
}
