//! Parameters of a simulated cluster.

use super::network::Network;
use super::node_clock::Clocks;
use super::parameter::require;
use super::traffic::RANK_BITS;
use crate::ClusterError;

/// A cluster that exists in virtual time only: many ranks on one thread, with a network and clocks of which everything
/// is known.
///
/// Algorithms run on it as they are. Neither the load of the machine that simulates nor the order in which it simulates the
/// ranks matters: equal clusters give equal results, bit for bit. A rank in the middle of a synchronization takes one
/// to two kilobytes.
///
/// ```
/// use downbeat_sync::{Algorithm, Clocks, Comm, Network, SimCluster};
///
/// let cluster = SimCluster {
///     ranks: 1_000,
///     ranks_per_node: 16,
///     sockets_per_node: 2,
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
/// // At the instant when the last one was done, by every rank's own clock:
/// let end = ranks.iter().map(|(.., done)| *done).max().unwrap();
/// let shown = ranks.iter().map(|(model, clock, _)| model.apply(clock.ticks_at(end)));
/// let worst = shown.clone().max().unwrap() - shown.min().unwrap();
/// println!("the clocks of 1,000 ranks show the same to {worst}");
/// # assert!(worst.as_nanos() < 100_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SimCluster {
    /// How many ranks there are: at most 67 million.
    pub ranks: u32,
    /// How many of them share a node and its clock; the last node may have fewer.
    pub ranks_per_node: u32,
    /// How many sockets a node has. Its ranks are dealt out in blocks.
    pub sockets_per_node: u32,
    /// How long messages take.
    pub network: Network,
    /// How wrong the clocks of the nodes are.
    pub clocks: Clocks,
    /// Another seed makes other chances.
    pub seed: u64,
}

impl SimCluster {
    /// The most ranks that there can be.
    pub const MAX_RANKS: u32 = 1 << RANK_BITS;

    /// Looks for a parameter that makes no sense.
    ///
    /// # Errors
    /// With its name.
    pub fn validate(&self) -> Result<(), ClusterError> {
        let name = |name: &str| name.to_owned();
        require(
            (1..=Self::MAX_RANKS).contains(&self.ranks),
            || name("ranks"),
            "1 to 67,108,864",
        )?;
        require(
            self.ranks_per_node > 0,
            || name("ranks_per_node"),
            "positive",
        )?;
        require(
            self.sockets_per_node > 0,
            || name("sockets_per_node"),
            "positive",
        )?;
        self.network.validate()?;
        self.clocks.validate()
    }
}
