//! HCA: HCA2, followed by another offset of every rank to rank 0.

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Duration, Global, Local, Timestamp};

use super::hca2;
use super::local_clock::{LocalClock, RankResult};
use crate::line::{LearnedModel, LineFit};
use crate::pair::OffsetClient;
use crate::pair::answer;
use crate::quality::{ExplainedError, Quality};
use crate::{Comm, CommError, SyncError};

/// HCA2, whose composed lines are then shifted to an offset that each rank measures directly to
/// rank 0, one rank after the other.
pub(super) async fn attempt<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<RankResult, CommError> {
    let to_root = hca2::lines(line, me, comm).await?;
    if comm.rank() == 0 {
        for client in 1..comm.size() {
            answer(me.clock, &me.base, comm, client).await?;
            comm.send(client, me.quality).await?;
        }
        return Ok(to_root.map(|_| me.own()));
    }
    let sample = measure(line, me, comm).await?;
    let root_quality: Quality = comm.recv(0).await?;
    let sample = sample.map_err(|why| why.against(root_quality.rank));
    Ok(to_root.and_then(|LearnedModel { model, quality }| {
        let sample = sample?;
        // The offset was measured directly to rank 0: its error does not include the hops of the tree.
        let measured = ExplainedError {
            offset: sample.half_width.unwrap_or(Duration::MAX),
            drift: 0.0,
        };
        let explained = ExplainedError {
            offset: measured.then(root_quality.explained).offset,
            ..quality.explained
        };
        me.learned(LearnedModel {
            model: shift_to(&model, sample)?,
            quality: Quality {
                // That of a single offset is not known.
                stated_error: None,
                explained,
                ..quality
            },
        })
    }))
}

async fn measure<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<Result<OffsetSample<Local>, SyncError>, CommError> {
    let (mut client, failure) = OffsetClient::<Local, Global>::new_or_single(line.offset, 0);
    let measured = client.attempt(me.clock, &me.base, comm).await?;
    Ok(failure.map_or(measured, Err))
}

/// Returns the model with the same rate that goes through the sample.
fn shift_to(
    model: &ClockModel<Local, Local>,
    sample: OffsetSample<Local>,
) -> Result<ClockModel<Local, Global>, SyncError> {
    let there = (sample.at - sample.offset).as_nanos();
    Ok(ClockModel::through(
        sample.at,
        Timestamp::from_nanos(there),
        model.rate(),
    )?)
}
