//! HCA3 (algorithm 1 of Hunold 2018): down a tree, each rank learns from one that knows global
//! time already.

use downbeat_clock_core::Clock;
use downbeat_clock_core::tree::{BinomialTree, PairRole};

use super::local_clock::{Attempt, LocalClock, RankResult};
use crate::line::LineFit;
use crate::{Comm, CommError, OffsetAlgorithm};

/// In every round, each rank that knows global time teaches one that does not. Models need not be
/// merged and scattered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hca3 {
    /// Parameters of each line.
    pub line: LineFit,
}

impl Hca3 {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        let tree = BinomialTree::new(comm.size());
        let mut mine = Ok(me.own());
        for role in tree.downwards(comm.rank()).chain(tree.beyond(comm.rank())) {
            match role {
                PairRole::ClientOf(reference) => {
                    let learned = self.line.learn(me.clock, &me.base, comm, reference).await?;
                    mine = learned.and_then(|learned| me.learned(learned));
                }
                PairRole::ReferenceOf(client) => {
                    // A rank that failed answers with its own time, so that the client does not
                    // wait forever.
                    let Attempt { model, quality } = mine.unwrap_or(me.own());
                    self.line
                        .teach(me.clock, &model, &quality, comm, client)
                        .await?;
                }
            }
        }
        Ok(mine)
    }
}

/// HCA3 with offsets instead of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hca3Offset {
    /// Algorithm that measures each offset.
    pub offset: OffsetAlgorithm,
}

impl Hca3Offset {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<RankResult, CommError> {
        Hca3 {
            line: LineFit::offset_only(self.offset),
        }
        .attempt(me, comm)
        .await
    }
}
