//! What all ranks of a communicator do together besides measuring: agree, and tell.
//!
//! Every function is called by all ranks. None of them is meant for speed: they come before and after what is timed.

use downbeat_clock_core::{BinomialTree, PairRole};

use crate::{Comm, CommError, Payload};

/// Combines a value of every rank, and tells all of them the result.
///
/// `combine` must not care for order.
///
/// # Errors
/// When a rank is gone.
pub async fn all_reduce<P: Payload, M: Comm>(
    comm: &M,
    mine: P,
    combine: impl Fn(P, P) -> P,
) -> Result<P, CommError> {
    let tree = BinomialTree::new(comm.size());
    let mut value = mine;
    for role in tree
        .beyond(comm.rank())
        .into_iter()
        .chain(tree.upwards(comm.rank()))
    {
        match role {
            PairRole::ReferenceOf(client) => value = combine(value, comm.recv(client).await?),
            PairRole::ClientOf(reference) => comm.send(reference, value).await?,
        }
    }
    broadcast(comm, value).await
}

/// Tells all ranks the value of rank 0.
///
/// # Errors
/// When a rank is gone.
pub async fn broadcast<P: Payload, M: Comm>(comm: &M, mine: P) -> Result<P, CommError> {
    let tree = BinomialTree::new(comm.size());
    let mut value = mine;
    for role in tree.downwards(comm.rank()).chain(tree.beyond(comm.rank())) {
        match role {
            PairRole::ReferenceOf(client) => comm.send(client, value).await?,
            PairRole::ClientOf(reference) => value = comm.recv(reference).await?,
        }
    }
    Ok(value)
}

/// Waits for all ranks: nobody returns before the last has called it.
///
/// # Errors
/// When a rank is gone.
pub async fn barrier<M: Comm>(comm: &M) -> Result<(), CommError> {
    all_reduce(comm, (), |(), ()| ()).await
}

/// Tells rank 0 the values of all ranks, in their order; on all other ranks, nothing is returned.
///
/// # Errors
/// When a rank is gone.
pub async fn gather<P: Payload, M: Comm>(comm: &M, mine: P) -> Result<Vec<P>, CommError> {
    if comm.rank() != 0 {
        comm.send(0, mine).await?;
        return Ok(Vec::new());
    }
    let mut all = vec![mine];
    for rank in 1..comm.size() {
        all.push(comm.recv(rank).await?);
    }
    Ok(all)
}

/// The lowest rank for which something is true, if it is true for any.
///
/// # Errors
/// When a rank is gone.
pub async fn lowest_rank_where<M: Comm>(comm: &M, mine: bool) -> Result<Option<u32>, CommError> {
    let nobody = u64::MAX;
    let lowest = all_reduce(
        comm,
        if mine { comm.rank().into() } else { nobody },
        u64::min,
    )
    .await?;
    Ok(u32::try_from(lowest).ok())
}

/// Whether all ranks have the same value.
///
/// # Errors
/// When a rank is gone.
pub async fn all_equal<M: Comm>(comm: &M, mine: u64) -> Result<bool, CommError> {
    let [least, most] =
        all_reduce(comm, [mine, mine], |a, b| [a[0].min(b[0]), a[1].max(b[1])]).await?;
    Ok(least == most)
}
