//! Every algorithm with more ranks than a test machine has threads.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[path = "common/simulated.rs"]
mod simulated;

use std::env;

use downbeat_sync::sim::{Clocks, Network, SimCluster};
use simulated::{cluster, synchronize};

const LABELS: [&str; 19] = [
    "none",
    "skampi/skampi/2",
    "skampi/trace-collector/3",
    "nbcbench/skampi/2",
    "jk/2/skampi/2",
    "hca/2/skampi/2",
    "hca2/2/skampi/2",
    "hca3/2/skampi/2",
    "hca3/2/skampi/2/recompute",
    "hca3/2/mean-rtt/2",
    "hca3-offset/skampi/2",
    "cube/2/3",
    "cube/100us/3",
    "h2hca(cube/3/4,prop)",
    "h2hca(hca3/2/skampi/2,prop)",
    "h2hca(jk/2/skampi/2,hca2/2/skampi/2)",
    "h3hca(hca2/2/skampi/2,hca3-offset/skampi/2,prop)",
    "h3hca(hca/2/skampi/2,skampi/skampi/2,prop)",
    "hlhca(rack=cube/2/3,node=hca3/2/skampi/2,socket=cube/2/2,numa=skampi/skampi/2,rank=prop)",
];

/// All ranks succeed by each of these algorithms, and their global times are roughly equal.
fn all_ranks_succeed(ranks: u32, labels: &[&str]) {
    let cluster = cluster(ranks, Network::typical(), Clocks::typical(), 1);
    let cluster = SimCluster {
        ranks_per_node: 16,
        sockets_per_node: 2,
        nodes_per_rack: Some(5),
        ..cluster
    };
    for label in labels {
        let outcomes = synchronize(&cluster, label);
        assert_eq!(outcomes.len(), ranks as usize);
        let end = outcomes.iter().map(|outcome| outcome.done).max().unwrap();
        let shown = outcomes.iter().enumerate().map(|(rank, outcome)| {
            let found = outcome
                .result
                .unwrap_or_else(|why| unreachable!("{label}, rank {rank} of {ranks}: {why}"));
            found.model.apply(outcome.clock.ticks_at(end))
        });
        let shown: Vec<_> = shown.collect();
        let worst = shown
            .iter()
            .map(|time| (*time - shown[0]).abs())
            .max()
            .unwrap();
        // A line through two points some microseconds apart has a bad slope, but begins at the
        // right time.
        assert!(
            *label == "none" || worst.as_nanos() < 50_000_000,
            "{label}, {ranks} ranks: {worst}"
        );
    }
}

/// Returns true in a long run.
fn is_long() -> bool {
    env::var_os("DOWNBEAT_LONG").is_some()
}

/// A thousand ranks in a long run.
#[test]
fn many_ranks_are_synchronized_by_every_algorithm() {
    all_ranks_succeed(if is_long() { 1_000 } else { 257 }, &LABELS);
}

/// One more than a power of two, the maximum depth of a tree: by a tree and by a cube; in a
/// long run by every algorithm.
#[test]
fn more_than_four_thousand_ranks_are_synchronized() {
    let labels: &[&str] = match is_long() {
        true => &LABELS,
        false => &["hca3/2/skampi/2", "h2hca(cube/3/4,prop)"],
    };
    all_ranks_succeed(4_097, labels);
}
