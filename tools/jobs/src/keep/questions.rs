//! Questions of rank 0 to all ranks: what they showed when their offsets were measured.

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::check::RankOffset;
use downbeat_sync::{Comm, CommError};

/// Answer of a rank, and that of rank 0 for the same moment.
pub(super) struct Answer<const N: usize> {
    pub(super) rank: u32,
    /// Measured offset, with its time by the clock of the rank.
    pub(super) offset: OffsetSample<Global>,
    pub(super) of_rank: [u64; N],
    pub(super) of_first: [u64; N],
}

/// Asks every rank with an offset for what `answer` gives at the moment of its measurement. All ranks call this; rank 0 has the offsets, and
/// gets the answers.
pub(super) async fn ask<const N: usize>(
    comm: &impl Comm,
    offsets: &[RankOffset],
    answer: impl Fn(Timestamp<Global>) -> [u64; N],
) -> Result<Vec<Answer<N>>, CommError> {
    if comm.rank() != 0 {
        let [is_asked, at]: [u64; 2] = comm.recv(0).await?;
        if is_asked == 1 {
            comm.send(0, answer(Timestamp::from_nanos(at as i64)))
                .await?;
        }
        return Ok(Vec::new());
    }
    let mut samples = vec![None; comm.size() as usize];
    for offset in offsets {
        samples[offset.rank as usize] = offset.sample;
    }
    let mut answers = Vec::new();
    for (rank, sample) in (0..).zip(samples).skip(1) {
        let Some(offset) = sample else {
            comm.send(rank, [0, 0_u64]).await?;
            continue;
        };
        let at = offset.at.as_nanos();
        comm.send(rank, [1, at as u64]).await?;
        let of_first = answer(Timestamp::from_nanos(at - offset.offset.as_nanos()));
        answers.push(Answer {
            rank,
            offset,
            of_rank: comm.recv(rank).await?,
            of_first,
        });
    }
    Ok(answers)
}
