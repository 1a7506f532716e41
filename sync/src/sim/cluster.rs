//! Parameters of a simulated cluster.

use super::network::Network;
use super::node_clock::{Clocks, NodeClock};
use super::parameter::Parameters;
use super::traffic::RANK_BITS;
use super::true_clocks::TrueClocks;
use crate::ClusterError;

/// Cluster that exists in virtual time only: many ranks on a few threads, with a network and clocks
/// whose true behaviour is known.
///
/// Algorithms run on it unchanged. Neither the load of the simulating machine nor the order in
/// which it simulates the ranks nor the number of threads of [`simulate_on`](Self::simulate_on)
/// matters: equal clusters give equal results, bit for bit. A rank in the middle of a
/// synchronization takes one to two kilobytes.
///
/// ```
/// use downbeat_sync::sim::{Clocks, Network, SimCluster};
/// use downbeat_sync::{Algorithm, Comm};
///
/// let cluster = SimCluster {
///     ranks: 1_000,
///     ranks_per_node: 16,
///     sockets_per_node: 2,
///     nodes_per_rack: None,
///     network: Network::typical(),
///     clocks: Clocks::typical(),
///     seed: 1,
/// };
/// let algorithm: Algorithm = "h2hca(hca3/10/skampi/10,prop)".parse()?;
/// let found = cluster.run(async |comm| {
///     let clock = comm.clock();
///     let synchronized = algorithm.synchronize(&comm.local_clock(&clock)?, comm).await?;
///     Ok::<_, downbeat_sync::SyncError>((synchronized.model, clock, comm.true_now()))
/// })?;
/// let ranks = found.into_iter().collect::<Result<Vec<_>, _>>()?;
///
/// // Compare the global clocks of all ranks at the time when the last one returned.
/// let end = ranks.iter().map(|(.., done)| *done).max().unwrap();
/// let shown = ranks.iter().map(|(model, clock, _)| model.apply(clock.ticks_at(end)));
/// let worst = shown.clone().max().unwrap() - shown.min().unwrap();
/// println!("the clocks of 1,000 ranks show the same to {worst}");
/// # assert!(worst.as_nanos() < 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SimCluster {
    /// Number of ranks: at most 67 million.
    pub ranks: u32,
    /// Number of ranks that share a node and its clock; the last node may have fewer.
    pub ranks_per_node: u32,
    /// Number of sockets of a node. Its ranks are assigned to them in blocks.
    pub sockets_per_node: u32,
    /// Number of nodes of a rack; the last one may have fewer. Without it, all are in one rack.
    pub nodes_per_rack: Option<u32>,
    /// Latencies of messages.
    pub network: Network,
    /// Errors of the clocks of the nodes.
    pub clocks: Clocks,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl SimCluster {
    /// Maximum number of ranks.
    pub const MAX_RANKS: u32 = 1 << RANK_BITS;

    /// Returns the clocks of all ranks, for readings after a simulation.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn true_clocks(&self) -> Result<TrueClocks, ClusterError> {
        self.validate()?;
        let nodes = 0..self.ranks.div_ceil(self.ranks_per_node);
        let clock = |node| NodeClock::new(&self.clocks, self.seed, node);
        Ok(TrueClocks::new(
            nodes.map(clock).collect(),
            self.clocks.clone(),
            self.ranks_per_node,
        ))
    }

    /// Checks that all parameters are in range.
    ///
    /// # Errors
    /// [`ClusterError::Parameter`] with the name of the parameter.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let own = Parameters("");
        let is_possible = (1..=Self::MAX_RANKS).contains(&self.ranks);
        own.require(is_possible, "ranks", "1 to 67,108,864")?;
        own.require(self.ranks_per_node > 0, "ranks_per_node", "positive")?;
        own.require(self.sockets_per_node > 0, "sockets_per_node", "positive")?;
        let has_nodes = self.nodes_per_rack != Some(0);
        own.require(has_nodes, "nodes_per_rack", "positive")?;
        self.network.validate()?;
        self.clocks.validate()
    }
}
