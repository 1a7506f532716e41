//! HlHCA (algorithm 4 of Hunold 2018): one algorithm between nodes, and others within them.

use downbeat_clock_core::Clock;

use super::flat::FlatAlgorithm;
use super::local_clock::{LocalClock, RankResult};
use crate::{Comm, CommError};

/// Hierarchical synchronization. The first rank of every group takes part in the level above, and
/// is then the reference of its own group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hierarchy {
    /// `h2hca(NODES,RANKS)`: between nodes, then within each.
    Two {
        /// Algorithm between the first ranks of all nodes.
        nodes: FlatAlgorithm,
        /// Algorithm between the ranks of a node.
        ranks: FlatAlgorithm,
    },
    /// `h3hca(NODES,SOCKETS,RANKS)`: between nodes, then between the sockets of each, then within
    /// each socket.
    Three {
        /// Algorithm between the first ranks of all nodes.
        nodes: FlatAlgorithm,
        /// Algorithm between the first ranks of the sockets of a node.
        sockets: FlatAlgorithm,
        /// Algorithm between the ranks of a socket.
        ranks: FlatAlgorithm,
    },
}

impl Hierarchy {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        let rank = comm.rank();
        // Every rank has a color here, and so a group.
        let Some(node) = comm.split(Some(me.placement.node), rank).await? else {
            return Ok(Ok(me.own()));
        };
        let node_leaders = comm.split(leader_color(&node), rank).await?;
        match self {
            Self::Two { nodes, ranks } => {
                descend(me, [(node_leaders.as_ref(), nodes), (Some(&node), ranks)]).await
            }
            Self::Three {
                nodes,
                sockets,
                ranks,
            } => {
                let Some(socket) = node.split(Some(me.placement.socket), rank).await? else {
                    return Ok(Ok(me.own()));
                };
                let socket_leaders = node.split(leader_color(&socket), rank).await?;
                let levels = [
                    (node_leaders.as_ref(), nodes),
                    (socket_leaders.as_ref(), sockets),
                    (Some(&socket), ranks),
                ];
                descend(me, levels).await
            }
        }
    }
}

/// Returns a color for the rank that takes part in the level above.
fn leader_color<M: Comm>(group: &M) -> Option<u32> {
    (group.rank() == 0).then_some(0)
}

/// Runs the levels from the coarsest to the finest: each starts from the model of the level before.
async fn descend<K: Clock, M: Comm, const LEVELS: usize>(
    me: &LocalClock<'_, K>,
    levels: [(Option<&M>, &FlatAlgorithm); LEVELS],
) -> Result<RankResult, CommError> {
    let mut me = LocalClock { ..*me };
    let mut failure = None;
    for (comm, algorithm) in levels {
        // Skips a level in which this rank takes no part or is alone.
        let Some(comm) = comm.filter(|comm| comm.size() > 1) else {
            continue;
        };
        match algorithm.attempt(&me, comm).await? {
            Ok(learned) => {
                me = LocalClock {
                    base: learned.model.renamed(),
                    quality: learned.quality,
                    ..me
                }
            }
            // The rank continues with its current model, so that no other waits forever.
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    Ok(failure.map_or(Ok(me.own()), Err))
}
