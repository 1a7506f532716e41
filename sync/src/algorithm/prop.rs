//! ClockPropSync (algorithm 3 of the 2018 paper): ranks that read one source of time need only be told.

use core::num::NonZeroU32;

use downbeat_clock_core::{Clock, Duration, Global};

use super::{Attempt, LocalClock, Synchronized};
use crate::collective::broadcast;
use crate::line::Quality;
use crate::pair::answer;
use crate::{Comm, CommError, OffsetAlgorithm, OffsetClient, SyncError};

/// Rank 0 tells all others its model of the counter, and they adopt it: if they read the same counter.
///
/// That is checked, not assumed. The ranks must say that their source is the same, and a rank that reads the model of
/// rank 0 by its own counter must find an offset to rank 0 that may well be none: two emulated nodes share a boot id
/// and have different clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockPropSync;

/// Enough for one of them to be quick.
const CHECK: OffsetAlgorithm = OffsetAlgorithm::skampi(NonZeroU32::new(100).unwrap());

impl ClockPropSync {
    pub(super) async fn attempt<K: Clock, M: Comm>(
        &self,
        me: &LocalClock<'_, K>,
        comm: &M,
    ) -> Result<Attempt, CommError> {
        let model = broadcast(comm, me.own().model).await?;
        let of_root = broadcast(comm, me.quality).await?;
        let source = broadcast(comm, me.source).await?;
        if comm.rank() == 0 {
            for client in 1..comm.size() {
                answer(me.clock, &model, comm, client).await?;
            }
            return Ok(Ok(me.own()));
        }
        let (mut client, _) = OffsetClient::<Global, Global>::or_single(CHECK, 0);
        let sample = client.attempt(me.clock, &model, comm).await?;
        Ok(sample.and_then(|sample| {
            // A nanosecond for the rounding of stamps.
            let certain = sample.half_width.unwrap_or(Duration::ZERO) + Duration::from_nanos(1);
            if source != me.source || sample.offset.abs() > certain {
                return Err(SyncError::OtherSource {
                    offset: sample.offset,
                    half_width: certain,
                });
            }
            let quality = Quality {
                half_width: sample.half_width,
                ..Quality::default()
            };
            Ok(Synchronized {
                model,
                quality: quality.and(of_root),
            })
        }))
    }
}
