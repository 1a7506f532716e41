//! Parts of a simulated cluster, each simulated by one thread.

use core::ops::Range;

use super::cluster::SimCluster;

/// Consecutive nodes of a cluster, with their ranks.
#[derive(Clone, Debug)]
pub(super) struct SimPart {
    pub(super) index: usize,
    pub(super) nodes: Range<u32>,
    pub(super) ranks: Range<u32>,
    /// Number of ranks of every part but the last.
    ranks_per_part: u32,
}

impl SimPart {
    /// Splits a cluster into parts of equal numbers of nodes; at most one per node.
    pub(super) fn split(cluster: &SimCluster, parts: usize) -> Vec<Self> {
        let nodes = cluster.ranks.div_ceil(cluster.ranks_per_node);
        let parts = u32::try_from(parts).unwrap_or(u32::MAX).clamp(1, nodes);
        let nodes_per_part = nodes.div_ceil(parts);
        let first_rank = |node: u32| {
            node.saturating_mul(cluster.ranks_per_node)
                .min(cluster.ranks)
        };
        (0..nodes.div_ceil(nodes_per_part))
            .map(|part| {
                let first = part * nodes_per_part;
                let end = nodes.min(first.saturating_add(nodes_per_part));
                Self {
                    index: part as usize,
                    nodes: first..end,
                    ranks: first_rank(first)..first_rank(end),
                    ranks_per_part: first_rank(nodes_per_part),
                }
            })
            .collect()
    }

    /// Returns the index of the part of a rank.
    pub(super) fn of(&self, rank: u32) -> usize {
        (rank / self.ranks_per_part) as usize
    }
}
