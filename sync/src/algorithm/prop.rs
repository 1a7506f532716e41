//! ClockPropSync (algorithm 3 of Hunold 2018): ranks that read the same time source adopt the
//! model of rank 0.

use core::num::NonZeroU32;

use downbeat_clock_core::tree::{BinomialTree, PairRole};
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global};

use super::local_clock::{Attempt, LocalClock, RankResult};
use crate::collective::broadcast;
use crate::pair::OffsetClient;
use crate::pair::answer;
use crate::quality::{ExplainedError, Quality};
use crate::{Comm, CommError, OffsetAlgorithm, SyncError};

/// Exchanges of a rank with its parent in the tree: enough that one of them is quick.
pub(super) const EXCHANGES: u32 = 20;

const CHECK: OffsetAlgorithm = OffsetAlgorithm::skampi(NonZeroU32::new(EXCHANGES).unwrap());

/// Rank 0 sends its model of the counter to all others, which adopt it if they read the same
/// counter.
///
/// That is checked along a tree: a rank and its parent must have the same
/// [`source`](super::LocalClock::source), and by the model of rank 0 their counters must
/// have an offset that is zero within its error bound. Two emulated nodes, for example,
/// share a boot id but not a clock.
pub(super) async fn attempt<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    comm: &M,
) -> Result<RankResult, CommError> {
    let model = broadcast(comm, me.own().model).await?;
    let source = broadcast(comm, me.source).await?;
    let mut proven = Ok(me.quality);
    for role in BinomialTree::new(comm.size()).roles_from_root(comm.rank()) {
        match role {
            PairRole::ReferenceOf(client) => {
                comm.send(client, u64::from(proven.is_ok())).await?;
                comm.send(client, proven.unwrap_or(me.quality)).await?;
                answer(me.clock, &model, comm, client).await?;
            }
            PairRole::ClientOf(parent) => {
                let is_proven: u64 = comm.recv(parent).await?;
                let of_parent: Quality = comm.recv(parent).await?;
                let certain = compare_counters(me, &model, source, comm, parent).await?;
                let certain = match is_proven {
                    // The difference from that rank says nothing.
                    0 => Err(SyncError::OtherRank(of_parent.rank)),
                    _ => certain,
                };
                proven = certain
                    .map(|certain| same_clock_within(certain, me.quality.rank).combine(of_parent))
                    .map_err(|why| why.against(of_parent.rank));
            }
        }
    }
    Ok(proven.map(|quality| Attempt { model, quality }))
}

/// Compares the counters of this rank and of its parent, by one model of both.
/// Returns by how much they can differ.
async fn compare_counters<K: Clock, M: Comm>(
    me: &LocalClock<'_, K>,
    model: &ClockModel<Counter, Global>,
    source: u64,
    comm: &M,
    parent: u32,
) -> Result<Result<Duration, SyncError>, CommError> {
    let (mut client, _) = OffsetClient::<Global, Global>::new_or_single(CHECK, parent);
    let sample = client.attempt(me.clock, model, comm).await?;
    Ok(sample.and_then(|sample| {
        let certain = sample.half_width.unwrap_or(Duration::ZERO);
        if source == me.source && sample.offset.abs() <= certain {
            return Ok(certain);
        }
        Err(SyncError::OtherSource {
            reference: parent,
            offset: sample.offset,
            half_width: certain,
        })
    }))
}

/// Quality of the clock of a rank that reads the counter of another, as messages show
/// with this uncertainty.
fn same_clock_within(certain: Duration, rank: u32) -> Quality {
    Quality {
        explained: ExplainedError {
            offset: certain,
            drift: 0.0,
        },
        rank,
        ..Quality::default()
    }
}
