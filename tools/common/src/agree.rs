//! Agreement of the ranks of a program: all continue, or all fail for the same reason.

use downbeat_sync::collective::SharedError;
use downbeat_sync::{Comm, CommError, collective};

use crate::Failure;

/// All ranks fail in the same way; rank 0 gets the message of the lowest rank that failed, the others
/// an empty one.
impl SharedError for Failure {
    async fn share<M: Comm>(comm: &M, failed: u32, own: Option<Self>) -> Result<Self, CommError> {
        let (kind, text) = match &own {
            None => (0, ""),
            Some(Self::Help(text)) => (HELP, text.as_str()),
            Some(Self::Input(text)) => (INPUT, text.as_str()),
            Some(Self::Run(text) | Self::Signal(_, text)) => (RUN, text.as_str()),
        };
        let kind = if comm.rank() == failed { kind } else { 0 };
        let kind = collective::all_reduce(comm, kind, u64::max).await?;
        let text = collective::text_to_first(comm, failed, text).await?;
        Ok(match kind {
            HELP => Self::Help(text),
            INPUT => Self::Input(text),
            _ => Self::Run(text),
        })
    }
}

const HELP: u64 = 1;
const INPUT: u64 = 2;
const RUN: u64 = 3;

/// Returns the texts of all ranks on rank 0, and nothing on the others. All ranks call this.
///
/// # Errors
/// When a rank left.
pub async fn gather_texts<M: Comm>(comm: &M, text: &str) -> Result<Vec<String>, CommError> {
    let mut texts = Vec::new();
    for rank in 0..comm.size() {
        let text = collective::text_to_first(comm, rank, text).await?;
        if comm.rank() == 0 {
            texts.push(text);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::collective::agree_blocking;
    use downbeat_sync::{ThreadCluster, block_on_ready};

    /// Returns the result of every rank when some fail.
    fn outcome(ranks: u32, failing: &'static [u32]) -> Vec<Result<u32, String>> {
        let run = |comm: &downbeat_sync::ThreadComm| {
            let rank = comm.rank();
            let result = match failing.iter().position(|failing| *failing == rank) {
                Some(0) => Err(Failure::Input(format!(
                    "rank {rank} is {} off",
                    "very ".repeat(30)
                ))),
                Some(_) => Err(Failure::Run("never mind".to_owned())),
                None => Ok(rank),
            };
            agree_blocking(comm, result).map_err(|failure| format!("{failure:?}"))
        };
        ThreadCluster::new(ranks).run(run).unwrap()
    }

    #[test]
    fn all_ranks_continue_or_fail_and_rank_0_knows_the_reason() {
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
