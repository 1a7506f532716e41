//! How ranks hand each other as many words as they like.

use downbeat_sync::{Comm, CommError, MAX_WORDS};

/// Words for each rank, or from each.
pub(super) type Boxes = Vec<Vec<u64>>;

/// Empty ones.
pub(super) fn boxes<C: Comm>(comm: &C) -> Boxes {
    vec![vec![]; comm.size() as usize]
}

/// All other ranks.
pub(super) fn others<C: Comm>(comm: &C) -> Vec<u32> {
    in_turns(comm, (0..comm.size()).filter(|other| *other != comm.rank()))
}

/// Ranks in the order in which [`exchange`] wants them. In each turn, ranks are in pairs that meet: so nobody waits for
/// one who waits for another, and so on in a circle.
pub(super) fn in_turns<C: Comm>(comm: &C, ranks: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut ranks: Vec<u32> = ranks.into_iter().collect();
    ranks.sort_unstable_by_key(|other| {
        (u64::from(*other) + u64::from(comm.rank())) % u64::from(comm.size())
    });
    ranks.dedup();
    ranks
}

/// Sends others what is in `out`, which is empty then, and gets what they send into `inbox`. Of two ranks, each must have the
/// other one among those it exchanges `with`.
pub(super) async fn exchange<C: Comm>(
    comm: &C,
    with: &[u32],
    out: &mut Boxes,
    inbox: &mut Boxes,
) -> Result<(), CommError> {
    /// So many come along with their number: mostly that is all.
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
        let bytes: Vec<u8> = out
            .iter()
            .skip(FEW)
            .flat_map(|word| word.to_le_bytes())
            .collect();
        out.clear();
        if comm.rank() < *other {
            comm.send_bytes(*other, &bytes).await?;
        }
        let rest = inbox.get_mut(FEW..).unwrap_or_default();
        let mut found = vec![0; size_of_val(rest)];
        comm.recv_bytes(*other, &mut found).await?;
        if comm.rank() > *other {
            comm.send_bytes(*other, &bytes).await?;
        }
        for (word, bytes) in rest.iter_mut().zip(found.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
    Ok(())
}

/// The words of all ranks, on all of them, by ranks.
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

/// What one rank has to say; all others have zeros.
pub(super) fn heard<const N: usize>(one: [u64; N], other: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| one[i].max(other[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    /// Nothing, a little, and much, in all directions at once, again and again.
    #[test]
    fn everybody_gets_what_is_for_him() {
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
