//! Exchange of any number of bytes between ranks, of values and of errors.

use std::slice;

use downbeat_sync::payload::MAX_WORDS;
use downbeat_sync::{Comm, CommError};

use crate::correction_error::CorrectionError;
use crate::encoding::{Encoded, Merge, decode_values, merge_all};
use crate::{EventId, LocationId, TraceError};

/// Bytes to or from every rank.
pub(super) type Boxes = Vec<Vec<u8>>;

/// Returns an empty box for every rank.
pub(super) fn empty_boxes<C: Comm>(comm: &C) -> Boxes {
    vec![vec![]; comm.size() as usize]
}

/// Sends the bytes in `out` to each rank, and returns the bytes of each; those to the
/// rank itself stay. All ranks call this.
pub(crate) async fn exchange_bytes<C: Comm>(comm: &C, mut out: Boxes) -> Result<Boxes, CommError> {
    // The first message has the number of bytes, and as many of them as fit.
    const FEW: usize = (MAX_WORDS - 1) * size_of::<u64>();
    let mut others: Vec<u32> = (0..comm.size())
        .filter(|other| *other != comm.rank())
        .collect();
    // In turns, so that ranks meet in pairs, and none waits for one that waits for
    // another.
    others.sort_unstable_by_key(|other| {
        (u64::from(*other) + u64::from(comm.rank())) % u64::from(comm.size())
    });
    let mut inbox = empty_boxes(comm);
    for to in &others {
        let bytes = &out[*to as usize];
        let mut first = [[0; size_of::<u64>()]; MAX_WORDS];
        first[0] = (bytes.len() as u64).to_le_bytes();
        let fitting = first[1..].as_flattened_mut().iter_mut().zip(bytes);
        fitting.for_each(|(to, byte)| *to = *byte);
        comm.send(*to, first.map(u64::from_le_bytes)).await?;
    }
    for from in &others {
        let [count, first @ ..]: [u64; MAX_WORDS] = comm.recv(*from).await?;
        let inbox = &mut inbox[*from as usize];
        inbox.extend_from_slice(first.map(u64::to_le_bytes).as_flattened());
        inbox.resize(count as usize, 0);
    }
    for other in others {
        let (out, inbox) = (&out[other as usize], &mut inbox[other as usize]);
        let rest = out.get(FEW..).unwrap_or_default();
        if comm.rank() < other {
            comm.send_bytes(other, rest).await?;
        }
        let missing = inbox.get_mut(FEW..).unwrap_or_default();
        comm.recv_bytes(other, missing).await?;
        if comm.rank() > other {
            comm.send_bytes(other, rest).await?;
        }
    }
    let this = comm.rank() as usize;
    inbox[this] = std::mem::take(&mut out[this]);
    Ok(inbox)
}

/// Returns the values of all ranks on each, by rank.
pub(super) async fn gather_values<T: for<'a> Encoded<'a>, C: Comm>(
    comm: &C,
    mine: &[T],
) -> Result<Vec<Vec<T>>, CommError> {
    let mut bytes = vec![];
    mine.iter().for_each(|value| value.encode(&mut bytes));
    let all = exchange_bytes(comm, vec![bytes; comm.size() as usize]).await?;
    Ok(all.iter().map(|of| decode_values(of).collect()).collect())
}

/// Returns the words of all ranks on each, by rank.
///
/// # Errors
/// If a rank is gone.
pub async fn gather_words<C: Comm>(comm: &C, mine: Vec<u64>) -> Result<Vec<Vec<u64>>, CommError> {
    gather_values(comm, &mine).await
}

/// Merges the report of this rank with those of all others.
pub(super) async fn merge_over_ranks<T: Merge + for<'a> Encoded<'a>, C: Comm>(
    mine: T,
    comm: &C,
) -> Result<T, CommError> {
    if comm.size() == 1 {
        return Ok(mine);
    }
    let all = gather_values(comm, slice::from_ref(&mine)).await?;
    Ok(merge_all(all.into_iter().flatten()).unwrap_or(mine))
}

/// Returns an error on all ranks if any has one: that with the lowest key.
pub(super) async fn agree_on_error<C: Comm>(
    comm: &C,
    fault: Option<(u64, TraceError)>,
) -> Result<(), CorrectionError> {
    let all = gather_values(comm, &Vec::from_iter(fault)).await?;
    match all.into_iter().flatten().min_by_key(|(key, _)| *key) {
        Some((_, why)) => Err(CorrectionError::Trace(why)),
        None => Ok(()),
    }
}

/// Errors that are found when all ranks have added their events, by their numbers.
impl<'a> Encoded<'a> for TraceError {
    fn encode(&self, to: &mut Vec<u8>) {
        let (kind, event, other): (u8, _, _) = match *self {
            Self::TooFar(event) => (0, event, event),
            Self::OtherKind { event, other } => (1, event, other),
            Self::OtherRoot { event, other } => (2, event, other),
            Self::NotEntered(event) => (3, event, event),
            other => {
                debug_assert!(false, "{other} is found when events are added");
                let event = EventId {
                    location: LocationId(u32::MAX),
                    event: u32::MAX,
                };
                (2, event, event)
            }
        };
        (kind, (event, other)).encode(to);
    }

    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        let (kind, (event, other)) = <(u8, (EventId, EventId))>::decode(from)?;
        Some(match kind {
            0 => Self::TooFar(event),
            1 => Self::OtherKind { event, other },
            2 => Self::OtherRoot { event, other },
            _ => Self::NotEntered(event),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    #[test]
    fn every_rank_receives_its_messages() {
        let bytes = |round: u64, from: u64, to: u64| -> Vec<u8> {
            (0..(from * 7 + to * 3 + round * 5) % 13 * (round % 3) * 9)
                .flat_map(|i| (i << 32 | from << 8 | to).to_le_bytes())
                .collect()
        };
        for ranks in [1, 2, 3, 4, 5, 8] {
            let done = ThreadCluster::new(ranks).run(|comm| {
                let (this, ranks) = (u64::from(comm.rank()), u64::from(ranks));
                block_on_ready(async {
                    for round in 0..30 {
                        let out = (0..ranks).map(|to| bytes(round, this, to)).collect();
                        let inbox = exchange_bytes(comm, out).await?;
                        let expected = (0..ranks).map(|from| bytes(round, from, this));
                        assert!(inbox.into_iter().eq(expected));
                    }
                    let all = gather_words(comm, vec![this; 20]).await?;
                    assert!(all.into_iter().eq((0..ranks).map(|rank| vec![rank; 20])));
                    Ok::<_, CommError>(())
                })
            });
            assert!(done.unwrap().into_iter().all(|done| done.is_ok()));
        }
    }
}
