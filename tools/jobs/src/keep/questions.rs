//! Questions of rank 0 to all ranks: what they showed when their offsets were measured.

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::check::RankOffset;
use downbeat_sync::payload::Payload;
use downbeat_sync::{Comm, CommError};

/// Answer of a rank, and that of rank 0 for the same moment.
pub(super) struct Answer<P> {
    pub(super) rank: u32,
    /// Measured offset, with its time by the clock of the rank.
    pub(super) offset: OffsetSample<Global>,
    pub(super) of_rank: P,
    pub(super) of_first: P,
}

/// Asks every rank with an offset for what `answer` gives at the moment of its measurement. All ranks call this; rank 0 has the offsets, and
/// gets the answers.
pub(super) async fn ask<P: Payload>(
    comm: &impl Comm,
    offsets: &[RankOffset],
    answer: impl Fn(Timestamp<Global>) -> P,
) -> Result<Vec<Answer<P>>, CommError> {
    if comm.rank() != 0 {
        let (is_asked, at): (bool, Timestamp<Global>) = comm.recv(0).await?;
        if is_asked {
            comm.send(0, answer(at)).await?;
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
            comm.send(rank, (false, Timestamp::<Global>::ORIGIN))
                .await?;
            continue;
        };
        comm.send(rank, (true, offset.at)).await?;
        let of_first = answer(offset.at - offset.offset);
        answers.push(Answer {
            rank,
            offset,
            of_rank: comm.recv(rank).await?,
            of_first,
        });
    }
    Ok(answers)
}
