//! What the ranks of a program must agree on: that all go on, or that all end for the same reason.

use downbeat_sync::{Comm, CommError, MAX_WORDS, block_on_ready, collective};

use crate::Failure;

/// Goes on if all ranks can. Otherwise all of them fail in the same way, and rank 0 knows what the lowest of those has
/// to say that could not go on. All ranks call this.
///
/// # Errors
/// If any rank failed, or is gone.
pub async fn agree<T, M: Comm>(comm: &M, mine: Result<T, Failure>) -> Result<T, Failure> {
    let Some(speaker) = collective::lowest_rank_where(comm, mine.is_err())
        .await
        .map_err(Failure::run)?
    else {
        return mine;
    };
    let (kind, text) = match &mine {
        Ok(_) => (0, ""),
        Err(Failure::Help(text)) => (HELP, text.as_str()),
        Err(Failure::Input(text)) => (INPUT, text.as_str()),
        Err(Failure::Run(text) | Failure::Signal(_, text)) => (RUN, text.as_str()),
    };
    let of_speaker = |kind| if comm.rank() == speaker { kind } else { 0 };
    let told = collective::all_reduce(comm, of_speaker(kind), u64::max)
        .await
        .map_err(Failure::run)?;
    let text = send_text(comm, speaker, text).await.map_err(Failure::run)?;
    Err(match told {
        HELP => Failure::Help(text),
        INPUT => Failure::Input(text),
        _ => Failure::Run(text),
    })
}

/// The same for ranks that never suspend.
///
/// # Errors
/// As [`agree`].
pub fn agree_blocking<T, M: Comm>(comm: &M, mine: Result<T, Failure>) -> Result<T, Failure> {
    block_on_ready_failure(agree(comm, mine))
}

/// Runs work of ranks that never suspend, such as those of MPI.
///
/// # Errors
/// Those of the work.
pub fn block_on_ready_failure<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    block_on_ready(async { Ok::<_, CommError>(work.await) }).map_err(Failure::run)?
}

const HELP: u64 = 1;
const INPUT: u64 = 2;
const RUN: u64 = 3;

/// The texts of all ranks, on rank 0; on all others nothing. All ranks call this.
///
/// # Errors
/// When a rank is gone.
pub async fn gather_texts<M: Comm>(comm: &M, mine: &str) -> Result<Vec<String>, CommError> {
    let mut texts = Vec::new();
    for rank in 0..comm.size() {
        let text = send_text(comm, rank, mine).await?;
        if comm.rank() == 0 {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// From one rank to rank 0; nobody else is concerned, and gets an empty text.
async fn send_text<M: Comm>(comm: &M, from: u32, text: &str) -> Result<String, CommError> {
    if from == 0 && comm.rank() == 0 {
        return Ok(text.to_owned());
    }
    if comm.rank() == from {
        comm.send(0, text.len() as u64).await?;
        for part in text.as_bytes().chunks(BYTES) {
            comm.send(0, part_of(part)).await?;
        }
        return Ok(String::new());
    }
    if comm.rank() != 0 {
        return Ok(String::new());
    }
    let length: u64 = comm.recv(from).await?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < length {
        let words: TextPart = comm.recv(from).await?;
        bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
    }
    bytes.truncate(length as usize);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As many bytes as fit into a message.
type TextPart = [u64; MAX_WORDS];

const BYTES: usize = size_of::<TextPart>();

fn part_of(bytes: &[u8]) -> TextPart {
    let mut words = [0; MAX_WORDS];
    for (i, byte) in bytes.iter().enumerate() {
        words[i / 8] |= u64::from(*byte) << (i % 8 * 8);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::ThreadCluster;

    /// What every rank gets when those named fail.
    fn outcome(ranks: u32, failing: &'static [u32]) -> Vec<Result<u32, String>> {
        let run = |comm: &downbeat_sync::ThreadComm| {
            let rank = comm.rank();
            let mine = match failing.iter().position(|failing| *failing == rank) {
                Some(0) => Err(Failure::Input(format!(
                    "rank {rank} is {} off",
                    "very ".repeat(30)
                ))),
                Some(_) => Err(Failure::Run("never mind".to_owned())),
                None => Ok(rank),
            };
            agree_blocking(comm, mine).map_err(|failure| format!("{failure:?}"))
        };
        ThreadCluster::new(ranks).run(run).unwrap()
    }

    #[test]
    fn all_go_on_or_none_and_rank_0_knows_why() {
        for ranks in [1, 2, 3, 5, 8] {
            assert!(outcome(ranks, &[]).into_iter().eq((0..ranks).map(Ok)));
        }
        for (ranks, failing) in [(1, &[0][..]), (3, &[2]), (5, &[1, 3]), (8, &[0, 7])] {
            let found = outcome(ranks, failing);
            let why = format!(
                "Input(\"rank {} is {} off\")",
                failing[0],
                "very ".repeat(30)
            );
            assert_eq!(found[0], Err(why), "{failing:?} of {ranks}");
            assert!(
                found[1..]
                    .iter()
                    .all(|other| *other == Err("Input(\"\")".to_owned())),
                "{found:?}"
            );
        }
    }

    #[test]
    fn texts_of_any_length_arrive() {
        let text = |rank: u32| "é".repeat(rank as usize * 23);
        let found = ThreadCluster::new(4)
            .run(|comm| block_on_ready(gather_texts(comm, &text(comm.rank()))));
        let found: Vec<Vec<String>> = found.unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(found[0], (0..4).map(text).collect::<Vec<_>>());
        assert!(found[1..].iter().all(Vec::is_empty));
    }
}
