//! HCA2: up a tree, each rank learns from its parent; the root composes the lines and tells every rank its own.

use downbeat_clock_core::{BinomialTree, Clock, ClockModel, Duration, Local, PairRole};

use super::{Attempt, LocalClock};
use crate::line::{LearnedModel, LineFit, Quality};
use crate::{Comm, CommError, SyncError};

/// In every round, half of the ranks that are left learn a line from the other half. Lines are composed on the way up
/// and sent back down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hca2 {
    /// How each rank learns its line.
    pub line: LineFit,
}

/// From a rank's own time to that of the root of a subtree.
type Below = LearnedModel<Local, Local>;

/// To oneself.
const ITSELF: Below = LearnedModel {
    model: ClockModel::IDENTITY,
    quality: Quality {
        residual_deviation: None,
        half_width: Some(Duration::ZERO),
        left_out: 0,
    },
};

impl Hca2 {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Attempt, CommError> {
        let to_root = self.lines(me, comm).await?;
        Ok(to_root.and_then(|LearnedModel { model, quality }| {
            me.learned(LearnedModel {
                model: model.renamed(),
                quality,
            })
        }))
    }

    /// From this rank's time to that of rank 0.
    pub(super) async fn lines<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Result<Below, SyncError>, CommError> {
        // What is known of the root's own clock comes with the last line on every way there.
        let quality = if comm.rank() == 0 {
            me.quality
        } else {
            Quality::default()
        };
        let mut failure = None;
        let subtree = self.gather(me, quality, comm, &mut failure).await?;
        let mut mine = scatter(subtree, comm).await?;
        match BinomialTree::new(comm.size()).beyond(comm.rank()) {
            Some(PairRole::ClientOf(reference)) => {
                let line = self.line.learn(me.clock, &me.base, comm, reference).await?;
                let above = receive(comm, reference).await?;
                mine = line
                    .and_then(|line| compose(line, above))
                    .unwrap_or_else(|why| remember(&mut failure, why));
            }
            Some(PairRole::ReferenceOf(client)) => {
                self.line
                    .teach(me.clock, &me.base, &quality, comm, client)
                    .await?;
                send(comm, client, mine).await?;
            }
            None => {}
        }
        Ok(failure.map_or(Ok(mine), Err))
    }

    /// Up the tree: for every rank of this one's subtree, in order, the way to this rank; of the root's subtree, on the
    /// root alone.
    async fn gather<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        quality: Quality,
        comm: &M,
        failure: &mut Option<SyncError>,
    ) -> Result<Vec<Below>, CommError> {
        let mut subtree = vec![ITSELF];
        for role in BinomialTree::new(comm.size()).upwards(comm.rank()) {
            match role {
                PairRole::ReferenceOf(client) => {
                    self.line
                        .teach(me.clock, &me.base, &quality, comm, client)
                        .await?;
                    // The partner's subtree is as large as this one, and follows it.
                    for _ in 0..subtree.len() {
                        subtree.push(receive(comm, client).await?);
                    }
                }
                PairRole::ClientOf(reference) => {
                    let line = self.line.learn(me.clock, &me.base, comm, reference).await?;
                    let line = line.unwrap_or_else(|why| remember(failure, why));
                    for rank in &subtree {
                        let composed =
                            compose(*rank, line).unwrap_or_else(|why| remember(failure, why));
                        send(comm, reference, composed).await?;
                    }
                }
            }
        }
        Ok(subtree)
    }
}

/// Down the tree: every rank gets the ways of its subtree to the root, and passes on all but its own.
async fn scatter<M: Comm>(subtree: Vec<Below>, comm: &M) -> Result<Below, CommError> {
    let mut known = subtree;
    for role in BinomialTree::new(comm.size()).downwards(comm.rank()) {
        match role {
            PairRole::ClientOf(reference) => {
                for rank in &mut known {
                    *rank = receive(comm, reference).await?;
                }
            }
            PairRole::ReferenceOf(client) => {
                // The upper half of what is left is the client's.
                for rank in known.split_off(known.len() / 2) {
                    send(comm, client, rank).await?;
                }
            }
        }
    }
    Ok(known.first().copied().unwrap_or(ITSELF))
}

fn compose(line: Below, above: Below) -> Result<Below, SyncError> {
    Ok(LearnedModel {
        model: line.model.then(&above.model)?,
        quality: line.quality.and(above.quality),
    })
}

/// Keeps the first failure, and goes on with a line that is wrong, so that nobody waits in vain.
fn remember(failure: &mut Option<SyncError>, why: SyncError) -> Below {
    failure.get_or_insert(why);
    ITSELF
}

async fn send<M: Comm>(comm: &M, to: u32, line: Below) -> Result<(), CommError> {
    comm.send(to, line.model).await?;
    comm.send(to, line.quality).await
}

async fn receive<M: Comm>(comm: &M, from: u32) -> Result<Below, CommError> {
    Ok(LearnedModel {
        model: comm.recv(from).await?,
        quality: comm.recv(from).await?,
    })
}
