//! Synchronization of Jones and Koenig: a line from every rank directly to rank 0.

use downbeat_clock_core::Clock;

use super::local_clock::{LocalClock, RankResult};
use crate::line::LineFit;
use crate::pair::answer;
use crate::{Comm, CommError};

/// Every rank learns a line from rank 0, which measures one point of all lines before the next: so
/// all lines span the same time.
pub(super) async fn attempt<K: Clock, M: Comm>(
    line: LineFit,
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<RankResult, CommError> {
    if comm.rank() != 0 {
        let learned = line.learn(me.clock, &me.base, comm, 0).await?;
        return Ok(learned.and_then(|learned| me.learned(learned)));
    }
    for client in 1..comm.size() {
        comm.send(client, me.quality).await?;
    }
    for _ in 0..line.measurements() {
        for client in 1..comm.size() {
            answer(me.clock, &me.base, comm, client).await?;
        }
    }
    Ok(Ok(me.own()))
}
