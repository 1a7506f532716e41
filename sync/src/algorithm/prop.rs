//! ClockPropSync (algorithm 3 of Hunold 2018): ranks that read the same time source adopt the
//! model of rank 0.

use core::num::NonZeroU32;

use downbeat_clock_core::{Clock, Duration, Global};

use super::local_clock::{Attempt, LocalClock, RankResult};
use crate::collective::broadcast;
use crate::pair::OffsetClient;
use crate::pair::answer;
use crate::quality::{ExplainedError, Quality};
use crate::{Comm, CommError, OffsetAlgorithm, SyncError};

/// Enough exchanges that one of them is quick.
const CHECK: OffsetAlgorithm = OffsetAlgorithm::skampi(NonZeroU32::new(100).unwrap());

/// Rank 0 sends its model of the counter to all others, which adopt it if they read the same
/// counter.
///
/// That is checked: the ranks must have the same [`source`](super::LocalClock::source), and the
/// model of rank 0 applied to a rank's own counter must have an offset to rank 0 that is zero
/// within its error bound. Two emulated nodes, for example, share a boot id but not a clock.
pub(super) async fn attempt<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<RankResult, CommError> {
    let model = broadcast(comm, me.own().model).await?;
    let root_quality = broadcast(comm, me.quality).await?;
    let source = broadcast(comm, me.source).await?;
    if comm.rank() == 0 {
        for client in 1..comm.size() {
            answer(me.clock, &model, comm, client).await?;
        }
        return Ok(Ok(me.own()));
    }
    let (mut client, _) = OffsetClient::<Global, Global>::new_or_single(CHECK, 0);
    let sample = client.attempt(me.clock, &model, comm).await?;
    let sample = sample.map_err(|why| why.against(root_quality.rank));
    Ok(sample.and_then(|sample| {
        let certain = sample.half_width.unwrap_or(Duration::ZERO);
        if source != me.source || sample.offset.abs() > certain {
            return Err(SyncError::OtherSource {
                offset: sample.offset,
                half_width: certain,
            });
        }
        let quality = Quality {
            explained: ExplainedError {
                offset: certain,
                drift: 0.0,
            },
            rank: me.quality.rank,
            ..Quality::default()
        };
        Ok(Attempt {
            model,
            quality: quality.combine(root_quality),
        })
    }))
}
