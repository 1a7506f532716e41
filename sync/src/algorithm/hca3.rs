//! HCA3 (algorithm 1 of Hunold 2018): down a tree, each rank learns from one that knows global
//! time already.

use downbeat_clock_core::Clock;
use downbeat_clock_core::tree::{BinomialTree, PairRole};

use super::local_clock::{Attempt, LocalClock, RankResult};
use crate::line::LineFit;
use crate::{Comm, CommError};

/// In every round, each rank that knows global time teaches one that does not. Models need not be
/// merged and scattered.
pub(super) async fn attempt<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<RankResult, CommError> {
    let tree = BinomialTree::new(comm.size());
    let mut mine = Ok(me.own());
    for role in tree.roles_from_root(comm.rank()) {
        match role {
            PairRole::ClientOf(reference) => {
                let learned = line.learn(me.clock, &me.base, comm, reference).await?;
                mine = learned.and_then(|learned| me.learned(learned));
            }
            PairRole::ReferenceOf(client) => {
                // A rank that failed answers with its own time, so that the client does not
                // wait forever.
                let Attempt { model, quality } = mine.unwrap_or(me.own());
                line.teach(me.clock, &model, &quality, comm, client).await?;
            }
        }
    }
    Ok(mine)
}
