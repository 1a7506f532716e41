//! Exchange of any number of integers between ranks.

use downbeat_sync::payload::MAX_WORDS;
use downbeat_sync::{Comm, CommError};

/// Integers for each rank, or from each rank.
pub(super) type Boxes = Vec<Vec<u64>>;

/// Returns empty boxes.
pub(super) fn boxes<C: Comm>(comm: &C) -> Boxes {
    vec![vec![]; comm.size() as usize]
}

/// Returns all other ranks.
pub(super) fn others<C: Comm>(comm: &C) -> Vec<u32> {
    in_turns(comm, (0..comm.size()).filter(|other| *other != comm.rank()))
}

/// Returns ranks in the order that [`exchange`] needs. In each turn, ranks meet in pairs, which
/// excludes cycles of waiting ranks.
pub(super) fn in_turns<C: Comm>(comm: &C, ranks: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut ranks: Vec<u32> = ranks.into_iter().collect();
    ranks.sort_unstable_by_key(|other| {
        (u64::from(*other) + u64::from(comm.rank())) % u64::from(comm.size())
    });
    ranks.dedup();
    ranks
}

/// Sends the contents of `out` to other ranks and empties it, and receives theirs into `inbox`. If
/// one rank is in the other's `with`, the reverse must hold as well.
pub(super) async fn exchange<C: Comm>(
    comm: &C,
    with: &[u32],
    out: &mut Boxes,
    inbox: &mut Boxes,
) -> Result<(), CommError> {
    /// Number of integers that are sent together with their count: mostly that is all.
    const FEW: usize = MAX_WORDS - 1;
    for to in with {
        let words = &out[*to as usize];
        let mut first = [0; MAX_WORDS];
        first[0] = words.len() as u64;
        first[1..]
            .iter_mut()
            .zip(words)
            .for_each(|(to, word)| *to = *word);
        comm.send(*to, first).await?;
    }
    for from in with {
        let [count, first @ ..]: [u64; MAX_WORDS] = comm.recv(*from).await?;
        let inbox = &mut inbox[*from as usize];
        inbox.clear();
        inbox.extend_from_slice(&first[..FEW.min(count as usize)]);
        inbox.resize(count as usize, 0);
    }
    for other in with {
        let (out, inbox) = (&mut out[*other as usize], &mut inbox[*other as usize]);
        let rest = out.get(FEW..).unwrap_or_default();
        if comm.rank() < *other {
            send_words(comm, *other, rest).await?;
        }
        receive_words(comm, *other, inbox.get_mut(FEW..).unwrap_or_default()).await?;
        if comm.rank() > *other {
            send_words(comm, *other, rest).await?;
        }
        out.clear();
    }
    Ok(())
}

/// Number of integers that are sent at once, which limits the memory of their encoded form.
const AT_ONCE: usize = 1 << 16;

async fn send_words<C: Comm>(comm: &C, to: u32, words: &[u64]) -> Result<(), CommError> {
    let mut bytes = vec![];
    for words in words.chunks(AT_ONCE) {
        bytes.clear();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        comm.send_bytes(to, &bytes).await?;
    }
    Ok(())
}

async fn receive_words<C: Comm>(comm: &C, from: u32, words: &mut [u64]) -> Result<(), CommError> {
    let mut bytes = vec![0; 8 * words.len().min(AT_ONCE)];
    for words in words.chunks_mut(AT_ONCE) {
        let bytes = &mut bytes[..size_of_val(words)];
        comm.recv_bytes(from, bytes).await?;
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
    Ok(())
}

/// Gathers the integers of all ranks on every rank, by ranks.
pub(super) async fn gather_everywhere<C: Comm>(
    comm: &C,
    mine: Vec<u64>,
) -> Result<Boxes, CommError> {
    let mut out = vec![mine; comm.size() as usize];
    let mut all = boxes(comm);
    exchange(comm, &others(comm), &mut out, &mut all).await?;
    let this = comm.rank() as usize;
    std::mem::swap(&mut all[this], &mut out[this]);
    Ok(all)
}

/// Combines two messages of which at most one is not all zeros.
pub(super) fn heard<const N: usize>(one: [u64; N], other: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| one[i].max(other[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    /// No, few and many integers are sent in all directions at once, repeatedly.
    #[test]
    fn every_rank_receives_its_messages() {
        let words = |round: u64, from: u64, to: u64| -> Vec<u64> {
            (0..(from * 7 + to * 3 + round * 5) % 13 * (round % 3) * 9)
                .map(|i| i << 32 | from << 8 | to)
                .collect()
        };
        for ranks in [1, 2, 3, 4, 5, 8] {
            let done = ThreadCluster::new(ranks).run(|comm| {
                let (this, others) = (u64::from(comm.rank()), others(comm));
                let (mut out, mut inbox) = (boxes(comm), boxes(comm));
                block_on_ready(async {
                    for round in 0..30 {
                        others
                            .iter()
                            .for_each(|to| out[*to as usize] = words(round, this, u64::from(*to)));
                        exchange(comm, &others, &mut out, &mut inbox).await?;
                        for from in &others {
                            assert_eq!(inbox[*from as usize], words(round, u64::from(*from), this));
                        }
                        assert!(out.iter().all(Vec::is_empty));
                    }
                    let all = gather_everywhere(comm, vec![this; 20]).await?;
                    assert!(
                        all.into_iter()
                            .eq((0..u64::from(ranks)).map(|rank| vec![rank; 20]))
                    );
                    Ok::<_, CommError>(())
                })
            });
            assert!(done.unwrap().into_iter().all(|done| done.is_ok()));
        }
    }
}
