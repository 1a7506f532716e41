//! Helpers of the tests on simulated clusters, each of which uses some.

use downbeat_clock_core::Timestamp;
use downbeat_sync::sim::{Clocks, Network, SimClock, SimCluster, VirtualTime};
use downbeat_sync::{Algorithm, SyncError, Synchronized};

/// Creates a cluster of one rank per node: each has a clock of its own.
pub(crate) fn cluster(ranks: u32, network: Network, clocks: Clocks, seed: u64) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: 1,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network,
        clocks,
        seed,
    }
}

/// Result of a synchronization on one rank.
#[derive(Debug)]
pub(crate) struct SimOutcome {
    pub(crate) result: Result<Synchronized, SyncError>,
    pub(crate) clock: SimClock,
    pub(crate) done: Timestamp<VirtualTime>,
}

#[expect(clippy::unwrap_used, reason = "test helpers fail like tests")]
pub(crate) fn synchronize(cluster: &SimCluster, label: &str) -> Vec<SimOutcome> {
    let algorithm: Algorithm = label.parse().unwrap();
    let program = async |comm: &downbeat_sync::sim::SimComm| {
        let clock = comm.clock();
        let result = algorithm
            .synchronize(&comm.local_clock(&clock).unwrap(), comm)
            .await;
        SimOutcome {
            result,
            clock,
            done: comm.true_now(),
        }
    };
    cluster.run(program).unwrap()
}
