//! Simulated clusters of the usual network and clocks.

use downbeat_sync::sim::{Clocks, Network, SimCluster};

/// Creates a cluster of nodes with two sockets and this number of ranks.
pub(crate) fn cluster(ranks: u32, per_node: u32) -> SimCluster {
    SimCluster {
        ranks,
        ranks_per_node: per_node,
        sockets_per_node: 2,
        nodes_per_rack: None,
        network: Network::typical(),
        clocks: Clocks::typical(),
        seed: 1,
    }
}
