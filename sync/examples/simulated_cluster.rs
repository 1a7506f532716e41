//! Errors of the clocks of a large cluster after each synchronization, which cannot be measured on
//! a real cluster: at the end, and ten seconds later.
//!
//! `cargo run --release -p downbeat-sync --example simulated_cluster`, optionally with the number
//! of ranks after `--` (2,048 by default).
#![expect(clippy::print_stdout, reason = "examples print their results")]

use std::error::Error;

use downbeat_clock_core::{ClockModel, Counter, Duration, Global, Timestamp};
use downbeat_sync::sim::{Clocks, Network, SimClock, SimCluster, VirtualTime};
use downbeat_sync::{Algorithm, SyncError};

const LABELS: [&str; 5] = [
    "hca3-offset/skampi/100",
    "hca3/100/skampi/10",
    "hca3/100/skampi/10/recompute",
    "h2hca(hca3/100/skampi/10,prop)",
    "h2hca(hca3/1000/skampi/10,prop)",
];

fn main() -> Result<(), Box<dyn Error>> {
    let ranks = std::env::args()
        .nth(1)
        .map_or(Ok(2_048), |ranks| ranks.parse())?;
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 32,
        sockets_per_node: 2,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks: Clocks::typical(),
        seed: 1,
    };
    println!("{ranks} ranks, {} per node\n", cluster.ranks_per_node);
    println!(
        "| algorithm | takes | worst error at the end | 10 s later | messages |\n|---|---|---|---|---|"
    );
    for label in LABELS {
        let algorithm: Algorithm = label.parse()?;
        let simulated = cluster.simulate(async |comm| {
            let clock = comm.clock();
            let found = algorithm
                .synchronize(&comm.local_clock(&clock)?, comm)
                .await?;
            Ok::<_, SyncError>((found.model, clock))
        })?;
        let ranks = simulated
            .results
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
        let (end, later) = (simulated.ended, simulated.ended + Duration::from_secs(10));
        let (now, later) = (worst_error(&ranks, end), worst_error(&ranks, later));
        println!(
            "| {label} | {} | {now} | {later} | {} |",
            end - Timestamp::ORIGIN,
            simulated.messages
        );
    }
    Ok(())
}

/// Returns the largest difference at a true time between the global clock of rank 0 and that of
/// another rank.
fn worst_error(
    ranks: &[(ClockModel<Counter, Global>, SimClock)],
    at: Timestamp<VirtualTime>,
) -> Duration {
    let mut shown = ranks
        .iter()
        .map(|(model, clock)| model.apply(clock.ticks_at(at)));
    let Some(global) = shown.next() else {
        return Duration::ZERO;
    };
    shown
        .map(|time| (time - global).abs())
        .max()
        .unwrap_or_default()
}
