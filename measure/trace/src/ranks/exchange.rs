//! Exchange of any number of integers between ranks, and the encoding of events and
//! errors.

use downbeat_sync::payload::MAX_WORDS;
use downbeat_sync::{Comm, CommError};

use crate::correction_error::CorrectionError;
use crate::{EventId, LocationId, TraceError};

/// Words to or from every rank.
pub(super) type Boxes = Vec<Vec<u64>>;

/// Returns an empty box for every rank.
pub(super) fn empty_boxes<C: Comm>(comm: &C) -> Boxes {
    vec![vec![]; comm.size() as usize]
}

/// Sends the words in `out` to each rank, and returns the words of each; those to the
/// rank itself stay. All ranks call this.
pub(crate) async fn exchange_words<C: Comm>(comm: &C, mut out: Boxes) -> Result<Boxes, CommError> {
    // The first message has the number of words, and as many of them as fit.
    const FEW: usize = MAX_WORDS - 1;
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
        let words = &out[*to as usize];
        let mut first = [0; MAX_WORDS];
        first[0] = words.len() as u64;
        let fitting = first[1..].iter_mut().zip(words);
        fitting.for_each(|(to, word)| *to = *word);
        comm.send(*to, first).await?;
    }
    for from in &others {
        let [count, first @ ..]: [u64; MAX_WORDS] = comm.recv(*from).await?;
        let inbox = &mut inbox[*from as usize];
        inbox.extend_from_slice(&first[..FEW.min(count as usize)]);
        inbox.resize(count as usize, 0);
    }
    for other in others {
        let (out, inbox) = (&out[other as usize], &mut inbox[other as usize]);
        let rest = out.get(FEW..).unwrap_or_default();
        if comm.rank() < other {
            send_words(comm, other, rest).await?;
        }
        receive_words(comm, other, inbox.get_mut(FEW..).unwrap_or_default()).await?;
        if comm.rank() > other {
            send_words(comm, other, rest).await?;
        }
    }
    let this = comm.rank() as usize;
    inbox[this] = std::mem::take(&mut out[this]);
    Ok(inbox)
}

/// Number of words in one message of the rest of a box.
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

/// Returns the words of all ranks on each, by rank.
///
/// # Errors
/// If a rank is gone.
pub async fn gather_words<C: Comm>(comm: &C, mine: Vec<u64>) -> Result<Boxes, CommError> {
    exchange_words(comm, vec![mine; comm.size() as usize]).await
}

/// Returns an event as one word; later events of a location have greater ones.
pub(super) fn word_of(event: EventId) -> u64 {
    u64::from(event.location.0) << 32 | u64::from(event.event)
}

/// Returns the event of a word.
pub(super) fn event_of(word: u64) -> EventId {
    EventId {
        location: LocationId((word >> 32) as u32),
        event: word as u32,
    }
}

/// Returns an error on all ranks if any has one: that with the lowest key.
pub(super) async fn agree_on_error<C: Comm>(
    comm: &C,
    fault: Option<(u64, TraceError)>,
) -> Result<(), CorrectionError> {
    let mine = fault.map(|(key, why)| {
        let [kind, event, other] = words_of_error(why);
        vec![key, kind, event, other]
    });
    let all = gather_words(comm, mine.unwrap_or_default()).await?;
    let errors = all.iter().flat_map(|words| words.as_chunks::<4>().0);
    match errors.min() {
        Some([_, words @ ..]) => Err(CorrectionError::Trace(error_of(*words))),
        None => Ok(()),
    }
}

fn words_of_error(why: TraceError) -> [u64; 3] {
    match why {
        TraceError::Decreasing(event) => [0, word_of(event), 0],
        TraceError::TooFar(event) => [1, word_of(event), 0],
        TraceError::OtherKind { event, other } => [2, word_of(event), word_of(other)],
        TraceError::OtherRoot { event, other } => [3, word_of(event), word_of(other)],
        other => {
            debug_assert!(false, "{other} is found when events are added");
            [u64::MAX; 3]
        }
    }
}

fn error_of([kind, word, other]: [u64; 3]) -> TraceError {
    let [event, other] = [word, other].map(event_of);
    match kind {
        0 => TraceError::Decreasing(event),
        1 => TraceError::TooFar(event),
        2 => TraceError::OtherKind { event, other },
        _ => TraceError::OtherRoot { event, other },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    #[test]
    fn every_rank_receives_its_messages() {
        let words = |round: u64, from: u64, to: u64| -> Vec<u64> {
            (0..(from * 7 + to * 3 + round * 5) % 13 * (round % 3) * 9)
                .map(|i| i << 32 | from << 8 | to)
                .collect()
        };
        for ranks in [1, 2, 3, 4, 5, 8] {
            let done = ThreadCluster::new(ranks).run(|comm| {
                let (this, ranks) = (u64::from(comm.rank()), u64::from(ranks));
                block_on_ready(async {
                    for round in 0..30 {
                        let out = (0..ranks).map(|to| words(round, this, to)).collect();
                        let inbox = exchange_words(comm, out).await?;
                        let expected = (0..ranks).map(|from| words(round, from, this));
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
