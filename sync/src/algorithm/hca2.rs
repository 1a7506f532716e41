//! HCA2: up a tree, each rank learns from its parent; the root composes the lines and sends every
//! rank its own.

use downbeat_clock_core::tree::{BinomialTree, PairRole};
use downbeat_clock_core::{Clock, ClockModel, Local};

use super::local_clock::{LocalClock, RankResult};
use crate::line::{LearnedModel, LineFit};
use crate::quality::Quality;
use crate::{Comm, CommError, SyncError};

/// Model from a rank's own time to that of the root of a subtree.
type PathToRoot = LearnedModel<Local, Local>;

/// Path of a root to itself.
const EMPTY_PATH: PathToRoot = LearnedModel {
    model: ClockModel::IDENTITY,
    quality: Quality::PERFECT,
};

/// In every round, half of the remaining ranks learn a line from the other half. Lines are composed
/// on the way up and sent back down.
pub(super) async fn attempt<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<RankResult, CommError> {
    let to_root = lines(line, me, comm).await?;
    if comm.rank() == 0 {
        return Ok(to_root.map(|_| me.own()));
    }
    Ok(to_root.and_then(|LearnedModel { model, quality }| {
        me.learned(LearnedModel {
            model: model.renamed(),
            quality,
        })
    }))
}

/// Computes the model from this rank's time to that of rank 0.
pub(super) async fn lines<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<Result<PathToRoot, SyncError>, CommError> {
    // The quality of rank 0's own clock is sent with the last line of every path.
    let quality = if comm.rank() == 0 {
        me.quality
    } else {
        Quality {
            rank: me.quality.rank,
            ..Quality::PERFECT
        }
    };
    let mut failure = None;
    let subtree = gather(line, me, quality, comm, &mut failure).await?;
    let mut mine = scatter(subtree, comm).await?;
    match BinomialTree::new(comm.size()).beyond(comm.rank()) {
        Some(PairRole::ClientOf(reference)) => {
            let line = line.learn(me.clock, &me.base, comm, reference).await?;
            let above = receive(comm, reference).await?;
            mine = line
                .and_then(|line| compose(line, above))
                .unwrap_or_else(|why| keep_failure(&mut failure, why));
        }
        Some(PairRole::ReferenceOf(client)) => {
            line.teach(me.clock, &me.base, &quality, comm, client)
                .await?;
            send(comm, client, mine).await?;
        }
        None => {}
    }
    Ok(failure.map_or(Ok(mine), Err))
}

/// Goes up the tree, and returns the paths of the ranks of this rank's subtree to this rank, in
/// order. Only the root keeps those of its subtree.
async fn gather<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    quality: Quality,
    comm: &M,
    failure: &mut Option<SyncError>,
) -> Result<Vec<PathToRoot>, CommError> {
    let mut subtree = vec![EMPTY_PATH];
    for role in BinomialTree::new(comm.size()).upwards(comm.rank()) {
        match role {
            PairRole::ReferenceOf(client) => {
                line.teach(me.clock, &me.base, &quality, comm, client)
                    .await?;
                // The partner's subtree is as large as this one, and follows it.
                for _ in 0..subtree.len() {
                    subtree.push(receive(comm, client).await?);
                }
            }
            PairRole::ClientOf(reference) => {
                let line = line.learn(me.clock, &me.base, comm, reference).await?;
                let line = line.unwrap_or_else(|why| keep_failure(failure, why));
                for rank in &subtree {
                    let composed =
                        compose(*rank, line).unwrap_or_else(|why| keep_failure(failure, why));
                    send(comm, reference, composed).await?;
                }
            }
        }
    }
    Ok(subtree)
}

/// Goes down the tree: every rank gets the paths of its subtree to the root, and passes on all
/// except its own.
async fn scatter<M: Comm>(subtree: Vec<PathToRoot>, comm: &M) -> Result<PathToRoot, CommError> {
    let mut paths = subtree;
    for role in BinomialTree::new(comm.size()).downwards(comm.rank()) {
        match role {
            PairRole::ClientOf(reference) => {
                for path in &mut paths {
                    *path = receive(comm, reference).await?;
                }
            }
            PairRole::ReferenceOf(client) => {
                // The upper half of the remaining paths is the client's.
                for path in paths.split_off(paths.len() / 2) {
                    send(comm, client, path).await?;
                }
            }
        }
    }
    Ok(paths.first().copied().unwrap_or(EMPTY_PATH))
}

fn compose(line: PathToRoot, above: PathToRoot) -> Result<PathToRoot, SyncError> {
    Ok(LearnedModel {
        model: line.model.then(&above.model)?,
        quality: line.quality.combine(above.quality),
    })
}

/// Keeps the first failure, and continues with an incorrect line, so that no rank waits forever.
fn keep_failure(failure: &mut Option<SyncError>, why: SyncError) -> PathToRoot {
    failure.get_or_insert(why);
    EMPTY_PATH
}

async fn send<M: Comm>(comm: &M, to: u32, line: PathToRoot) -> Result<(), CommError> {
    comm.send(to, line.model).await?;
    comm.send(to, line.quality).await
}

async fn receive<M: Comm>(comm: &M, from: u32) -> Result<PathToRoot, CommError> {
    Ok(LearnedModel {
        model: comm.recv(from).await?,
        quality: comm.recv(from).await?,
    })
}
