//! Sound clocks that are kept: of any resolution, over messages that are delayed or not,
//! after a synchronization that learned their rates well or badly.

use downbeat_clock_core::Duration;
use downbeat_sync::keep::Keeper;
use downbeat_sync::sim::{Clocks, DelayTail, Network, SimCluster, SimComm};
use downbeat_sync::{Algorithm, SyncError};

pub(crate) const LABELS: [&str; 4] = [
    "cube/4/10",
    "nbcbench/mean-rtt/5",
    "hca3/10/skampi/5",
    "jk/20/skampi/2",
];

/// Resolutions of the clocks, in nanoseconds.
pub(crate) const GRANULARITIES: [u64; 5] = [1, 10, 100, 1_000, 10_000];

/// Delays as of cores that also do other work.
const BUSY: DelayTail = DelayTail::LogNormal {
    median: Duration::from_micros(2),
    sigma: 1.5,
};

/// Synchronizes and keeps the clocks of a cluster, whose messages are delayed if the seed
/// is odd. Returns an error of a rank, if one fails.
pub(crate) fn keep(label: &str, ranks: u32, granularity: u64, seed: u64) -> Result<(), SyncError> {
    let mut network = Network::typical();
    if seed % 2 == 1 {
        for link in [&mut network.socket, &mut network.node, &mut network.switch] {
            link.tail = BUSY;
        }
    }
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network,
        clocks: Clocks {
            granularity,
            ..Clocks::typical()
        },
        seed,
    };
    let algorithm: Algorithm = label.parse().unwrap();
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let me = comm.local_clock(&clock)?;
        let synchronized = algorithm.synchronize(&me, comm).await?;
        let mut keeper = Keeper::new(&me, &synchronized, Duration::from_secs(1));
        for _ in 0..10 {
            comm.pause(Duration::from_millis(100));
            keeper.keep_now(&me, comm).await?;
        }
        Ok(())
    };
    let kept = cluster.run(program).unwrap();
    let mut failed: Vec<SyncError> = kept.into_iter().filter_map(Result::err).collect();
    // The rank that found the fault says more than the others.
    failed.sort_by_key(|why| matches!(why, SyncError::OtherRank(_)));
    failed.first().map_or(Ok(()), |why| Err(*why))
}
