//! Minimum latencies of messages. The messages of two processes are processed by one
//! rank, in the same order as if it had the whole trace.

use downbeat_sync::{Comm, CommError};
use rustc_hash::FxHashMap;

use super::TracePart;
use super::exchange::{empty_boxes, exchange_bytes, merge_over_ranks};
use super::part::RankShare;
use crate::encoding::Merge;
use crate::latencies::by_pair::MessagesByPair;
use crate::latencies::cycles;
use crate::latencies::pair::EndpointPair;
use crate::latencies::round_trips::{LevelTimes, Trips, find_within_windows};
use crate::latencies::stays::StaySearch;
use crate::{Latencies, Trace};

impl Latencies {
    /// Does the same as [`measured`](Self::measured) for a trace that ranks share, on
    /// this number of threads per rank; collective, with the same result on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn measured_in_part<C: Comm>(
        part: &TracePart,
        workers: usize,
        comm: &C,
    ) -> Result<Self, CommError> {
        Self::measured_by_rank(&part.trace, &part.share, workers, comm).await
    }

    /// Does the same for the share of this rank.
    pub(crate) async fn measured_by_rank<C: Comm>(
        trace: &Trace,
        share: &RankShare,
        workers: usize,
        comm: &C,
    ) -> Result<Self, CommError> {
        let own = trace.times();
        let ghosts = share.exchange_ghost_times(trace, &own, comm).await?;
        let times = share.times_with_ghosts(&own, &ghosts);
        let mut messages = MessagesByPair::new(trace, &times, workers);
        share.exchange_messages(trace, &mut messages, comm).await?;
        let Trips { levels, mut pairs } = Trips::find(&mut messages, workers);
        let mut levels = merge_over_ranks(levels, comm).await?;
        let lengths = levels.map(LevelTimes::window);
        if lengths.iter().any(Option::is_some) {
            let found = find_within_windows(&mut messages, lengths, workers);
            let found = merge_over_ranks(found, comm).await?;
            for (level, both) in levels.iter_mut().zip(found) {
                level.round_trip.merge(both);
            }
        }
        let mut levels = levels.map(LevelTimes::latency);
        // All ranks know the same levels.
        if levels.iter().any(Option::is_none) {
            pairs = merge_over_ranks(pairs, comm).await?;
            cycles::fill(&mut levels, &pairs);
        }
        let mut existing = levels.iter().zip(trace.levels());
        if existing.any(|(level, exists)| exists && level.is_none()) {
            let mut search = StaySearch::default();
            trace.each_stay(&times, |stays| search.add(stays));
            merge_over_ranks(search, comm).await?.fill(&mut levels);
        }
        Ok(Self::from_levels(levels))
    }
}

impl RankShare {
    /// Hands the messages of each pair over to the rank of its first location, or of its
    /// first process.
    async fn exchange_messages<C: Comm>(
        &self,
        trace: &Trace,
        messages: &mut MessagesByPair<'_>,
        comm: &C,
    ) -> Result<(), CommError> {
        let mut owners = FxHashMap::default();
        for (location, of) in (0..).zip(trace.locations()) {
            let owner = self.owner(location);
            owners.entry(of.place().process).or_insert(owner);
        }
        let rank_of = |EndpointPair { level, ends }: EndpointPair| match level {
            0 => Some(self.owner(ends[0])),
            _ => owners.get(&ends[0]).copied(),
        };
        let mut out = empty_boxes(comm);
        messages.hand_over(&mut out, |pair| {
            rank_of(pair).filter(|rank| *rank != self.rank)
        });
        let inbox = exchange_bytes(comm, out).await?;
        inbox.iter().for_each(|bytes| messages.take_over(bytes));
        Ok(())
    }
}
