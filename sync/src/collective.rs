//! Collective operations of all ranks of a communicator, built on point-to-point messages.
//!
//! Every function is called by all ranks. They are not optimized for speed: call them before and
//! after timed sections.

use downbeat_clock_core::tree::{BinomialTree, PairRole};

use crate::payload::Payload;
use crate::{Comm, CommError, block_on_ready};

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
    for role in tree.roles_to_root(comm.rank()) {
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
    for role in tree.roles_from_root(comm.rank()) {
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

/// Returns the text of one rank on rank 0, and an empty one on all others. All ranks name the same one.
///
/// # Errors
/// If a rank is gone.
pub async fn text_to_first<M: Comm>(comm: &M, from: u32, text: &str) -> Result<String, CommError> {
    if comm.rank() == from && from != 0 {
        comm.send(0, text.len() as u64).await?;
        comm.send_bytes(0, text.as_bytes()).await?;
    }
    if comm.rank() != 0 {
        return Ok(String::new());
    }
    if from == 0 {
        return Ok(text.to_owned());
    }
    let length: u64 = comm.recv(from).await?;
    let mut bytes = vec![0; length as usize];
    comm.recv_bytes(from, &mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text of one rank on all ranks, which all name the same one.
///
/// # Errors
/// If a rank is gone.
pub async fn broadcast_text<M: Comm>(comm: &M, from: u32, text: &str) -> Result<String, CommError> {
    let text = text_to_first(comm, from, text).await?;
    let bytes = broadcast_bytes(comm, text.into_bytes()).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the bytes of rank 0 on all ranks.
///
/// # Errors
/// If a rank is gone.
pub async fn broadcast_bytes<M: Comm>(comm: &M, mine: Vec<u8>) -> Result<Vec<u8>, CommError> {
    let length = broadcast(comm, mine.len() as u64).await? as usize;
    let mut bytes = mine;
    bytes.resize(length, 0);
    let tree = BinomialTree::new(comm.size());
    for role in tree.roles_from_root(comm.rank()) {
        match role {
            PairRole::ReferenceOf(client) => comm.send_bytes(client, &bytes).await?,
            PairRole::ClientOf(reference) => comm.recv_bytes(reference, &mut bytes).await?,
        }
    }
    Ok(bytes)
}

/// Replaces each value on rank 0 by the greatest of all ranks. All ranks have the same number of values; those of other ranks are
/// unspecified afterwards.
///
/// Values travel up a tree: no rank holds more than those of two ranks, and rank 0 receives those of a logarithmic number.
///
/// # Errors
/// If a rank is gone.
pub async fn greatest_to_first<M: Comm>(comm: &M, values: &mut [i64]) -> Result<(), CommError> {
    let tree = BinomialTree::new(comm.size());
    let mut words = vec![[0; size_of::<i64>()]; values.len()];
    for role in tree.roles_to_root(comm.rank()) {
        match role {
            PairRole::ReferenceOf(client) => {
                comm.recv_bytes(client, words.as_flattened_mut()).await?;
                for (value, word) in values.iter_mut().zip(&words) {
                    *value = i64::from_le_bytes(*word).max(*value);
                }
            }
            PairRole::ClientOf(reference) => {
                for (word, value) in words.iter_mut().zip(values.iter()) {
                    *word = value.to_le_bytes();
                }
                comm.send_bytes(reference, words.as_flattened()).await?;
            }
        }
    }
    Ok(())
}

/// Returns the lowest rank on which `mine` is true, or `None` if there is none.
///
/// # Errors
/// If a rank is gone.
pub async fn lowest_rank_where<M: Comm>(comm: &M, mine: bool) -> Result<Option<u32>, CommError> {
    lowest(comm, mine.then_some(comm.rank())).await
}

/// Returns true if it is true on all ranks.
pub(crate) async fn all_true<M: Comm>(comm: &M, mine: bool) -> Result<bool, CommError> {
    Ok(lowest_rank_where(comm, !mine).await?.is_none())
}

/// Returns the lowest of the ranks with the same number as this one.
///
/// # Errors
/// If a rank is gone.
pub async fn lowest_rank_alike<M: Comm>(comm: &M, number: u64) -> Result<u32, CommError> {
    // Colors have 31 bits. Those of other numbers are seldom equal.
    let halves = [(number >> 33) as u32, number as u32 >> 1];
    let rank = comm.rank();
    let group = comm.split(Some(halves[0]), rank).await?;
    let group = group.as_ref().unwrap_or(comm);
    let lowest = broadcast(group, rank).await?;
    if all_equal(group, number).await? {
        return Ok(lowest);
    }
    let alike = group.split(Some(halves[1]), rank).await?;
    broadcast(alike.as_ref().unwrap_or(group), rank).await
}

/// Returns the lowest of the ranks' numbers, or `None` if none has one.
pub(crate) async fn lowest<M: Comm>(comm: &M, mine: Option<u32>) -> Result<Option<u32>, CommError> {
    let none = u64::MAX;
    let lowest = all_reduce(comm, mine.map_or(none, u64::from), u64::min).await?;
    Ok(u32::try_from(lowest).ok())
}

/// Error that ranks can share: see [`agree`].
#[expect(
    async_fn_in_trait,
    reason = "a rank stays on one thread: no Send bound is needed"
)]
pub trait SharedError: From<CommError> {
    /// Returns the error of this rank after ranks failed by themselves, of which `failed` is the
    /// lowest. All ranks call this, each with its own error, if it has one.
    ///
    /// # Errors
    /// If a rank is gone.
    async fn share<M: Comm>(comm: &M, failed: u32, own: Option<Self>) -> Result<Self, CommError>;
}

/// Returns the value of this rank if no rank failed, and an error on all ranks otherwise.
///
/// # Errors
/// If any rank failed, or is gone.
pub async fn agree<T, E: SharedError, M: Comm>(comm: &M, own: Result<T, E>) -> Result<T, E> {
    match lowest_rank_where(comm, own.is_err()).await? {
        Some(failed) => Err(E::share(comm, failed, own.err()).await?),
        None => own,
    }
}

/// Same as [`agree`], for a communicator that does not suspend.
///
/// # Errors
/// As [`agree`].
pub fn agree_blocking<T, E: SharedError, M: Comm>(comm: &M, own: Result<T, E>) -> Result<T, E> {
    block_on_ready(agree(comm, own))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadCluster;

    #[test]
    fn texts_of_any_length_arrive_everywhere() {
        for ranks in [1, 2, 3, 5] {
            for (from, length) in [(0, 0), (ranks - 1, 23), (ranks / 2, 24), (0, 100)] {
                let text = "é".repeat(length);
                let found = ThreadCluster::new(ranks).run(|comm| {
                    let mine = if comm.rank() == from { &text } else { "mine" };
                    block_on_ready(broadcast_text(comm, from, mine)).unwrap()
                });
                assert!(found.unwrap().iter().all(|found| *found == text));
            }
        }
    }

    #[test]
    fn rank_0_gets_the_greatest_of_each_value() {
        for ranks in [1_u32, 2, 3, 4, 5, 8, 11] {
            for length in [0, 1, 7, 300] {
                // Each value is greatest on another rank.
                let value = |rank: u32, place: u32| {
                    i64::from((place + rank) % ranks) * 1_000 - i64::from(place)
                };
                let found = ThreadCluster::new(ranks).run(|comm| {
                    let mut values: Vec<i64> =
                        (0..length).map(|at| value(comm.rank(), at)).collect();
                    block_on_ready(greatest_to_first(comm, &mut values)).unwrap();
                    values
                });
                let expected = (0..length).map(|at| (0..ranks).map(|rank| value(rank, at)).max());
                let expected: Option<Vec<i64>> = expected.collect();
                assert_eq!(
                    found.unwrap().first(),
                    expected.as_ref(),
                    "{ranks}, {length}"
                );
            }
        }
    }
}
