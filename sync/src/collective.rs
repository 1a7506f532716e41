//! Collective operations of all ranks of a communicator, built on point-to-point messages.
//!
//! Every function is called by all ranks. They are not optimized for speed: call them before and
//! after timed sections.

use downbeat_clock_core::{BinomialTree, PairRole};

use crate::{Comm, CommError, Payload};

/// Combines the values of all ranks, and returns the result on every rank.
///
/// `combine` must be commutative and associative.
///
/// # Errors
/// If a rank is gone.
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

/// Returns the value of rank 0 on all ranks.
///
/// # Errors
/// If a rank is gone.
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

/// Waits until all ranks have called this.
///
/// # Errors
/// If a rank is gone.
pub async fn barrier<M: Comm>(comm: &M) -> Result<(), CommError> {
    all_reduce(comm, (), |(), ()| ()).await
}

/// Returns the values of all ranks, in the order of ranks, on rank 0, and an empty list on all
/// others.
///
/// # Errors
/// If a rank is gone.
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

/// Returns the lowest rank on which `mine` is true, or `None` if there is none.
///
/// # Errors
/// If a rank is gone.
pub async fn lowest_rank_where<M: Comm>(comm: &M, mine: bool) -> Result<Option<u32>, CommError> {
    let none = u64::MAX;
    let lowest = all_reduce(comm, if mine { comm.rank().into() } else { none }, u64::min).await?;
    Ok(u32::try_from(lowest).ok())
}

/// Returns true if all ranks have the same value.
///
/// # Errors
/// If a rank is gone.
pub async fn all_equal<M: Comm>(comm: &M, mine: u64) -> Result<bool, CommError> {
    let [least, most] =
        all_reduce(comm, [mine, mine], |a, b| [a[0].min(b[0]), a[1].max(b[1])]).await?;
    Ok(least == most)
}
