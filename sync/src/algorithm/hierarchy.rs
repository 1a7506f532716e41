//! HlHCA (algorithm 4 of the 2018 paper): an algorithm between nodes, and others within.

use downbeat_clock_core::Clock;

use super::{Attempt, FlatAlgorithm, LocalClock};
use crate::{Comm, CommError};

/// The first rank of every group takes part in the level above, and is the reference of its own group afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hierarchy {
    /// `h2hca(NODES,RANKS)`: between nodes, then within each.
    Two {
        /// Between the first ranks of all nodes.
        nodes: FlatAlgorithm,
        /// Between the ranks of a node.
        ranks: FlatAlgorithm,
    },
    /// `h3hca(NODES,SOCKETS,RANKS)`: between nodes, then between the sockets of each, then within each socket.
    Three {
        /// Between the first ranks of all nodes.
        nodes: FlatAlgorithm,
        /// Between the first ranks of the sockets of a node.
        sockets: FlatAlgorithm,
        /// Between the ranks of a socket.
        ranks: FlatAlgorithm,
    },
}

impl Hierarchy {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Attempt, CommError> {
        let rank = comm.rank();
        // Every rank is in some group: a split without a color is for the leaders only.
        let Some(node) = comm.split(Some(me.place.node), rank).await? else {
            return Ok(Ok(me.own()));
        };
        let leaders = comm.split(leads(&node), rank).await?;
        match self {
            Self::Two { nodes, ranks } => {
                descend(me, [(leaders.as_ref(), nodes), (Some(&node), ranks)]).await
            }
            Self::Three {
                nodes,
                sockets,
                ranks,
            } => {
                let Some(socket) = node.split(Some(me.place.socket), rank).await? else {
                    return Ok(Ok(me.own()));
                };
                let heads = node.split(leads(&socket), rank).await?;
                let levels = [
                    (leaders.as_ref(), nodes),
                    (heads.as_ref(), sockets),
                    (Some(&socket), ranks),
                ];
                descend(me, levels).await
            }
        }
    }
}

/// The color of those that take part in the level above.
fn leads<M: Comm>(group: &M) -> Option<u32> {
    (group.rank() == 0).then_some(0)
}

/// From the coarsest level to the finest: what a rank learned at one is what it starts from at the next.
async fn descend<K: Clock, M: Comm, const LEVELS: usize>(
    me: &LocalClock<'_, K>,
    levels: [(Option<&M>, &FlatAlgorithm); LEVELS],
) -> Result<Attempt, CommError> {
    let mut me = LocalClock { ..*me };
    let mut failure = None;
    for (comm, algorithm) in levels {
        // A level that this rank has no part in, or all for itself.
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
            // It goes on with what it has, so that nobody waits in vain.
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    Ok(failure.map_or(Ok(me.own()), Err))
}
