//! Minimum latencies of messages. The messages of two processes are processed by one rank, in the
//! same order as if it had the whole trace.

use std::collections::BTreeMap;

use downbeat_clock_core::Duration;

use super::super::Latencies;
use super::super::latencies::by_pair::MessagesByPair;
use super::super::latencies::pair::EndpointPair;
use super::super::latencies::round_trips::TripSearch;
use super::TracePart;
use super::exchange::{boxes, exchange, others};
use super::verdict::sent_elsewhere;
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

impl Latencies {
    /// Does the same as [`measured`](Self::measured) for a trace that ranks share; collective, with
    /// the same result on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn measured_in_part<C: Comm>(part: &TracePart, comm: &C) -> Result<Self, CommError> {
        Self::measured_in_part_on(part, 1, comm).await
    }

    /// Does the same as [`measured_in_part`](Self::measured_in_part); each rank works on this
    /// number of threads.
    pub(crate) async fn measured_in_part_on<C: Comm>(
        part: &TracePart,
        workers: usize,
        comm: &C,
    ) -> Result<Self, CommError> {
        if comm.size() == 1 {
            return Ok(Self::measured_on(&part.trace, workers));
        }
        let trace = &part.trace;
        let times = trace.times();
        let elsewhere = sent_elsewhere(part, &times, comm).await?;
        let sent = |from: u32, mark: u32| match part.is_own(from) {
            true => {
                let event = trace.locations[from as usize].marks[mark as usize].event;
                times[from as usize][event as usize]
            }
            false => elsewhere[from as usize][mark as usize],
        };
        let mut messages = MessagesByPair::new(trace, workers, sent);
        // The messages of a pair go to the rank of its first location, or of its first process.
        let mut owners = BTreeMap::new();
        for (location, owner) in trace.locations().iter().zip(&part.owners) {
            owners.entry(location.place().process).or_insert(*owner);
        }
        let rank_of = |EndpointPair { level, ends }: EndpointPair| match level {
            0 => part.owners.get(ends[0] as usize),
            _ => owners.get(&ends[0]),
        };
        let (mut out, mut inbox) = (boxes(comm), boxes(comm));
        messages.hand_over(&mut out, |pair| {
            rank_of(pair).copied().filter(|rank| *rank != part.rank)
        });
        exchange(comm, &others(comm), &mut out, &mut inbox).await?;
        drop(out);
        inbox.iter().for_each(|words| messages.take_over(words));
        let mut search = TripSearch::default();
        loop {
            search.pass(&mut messages, workers);
            let least = |one: [u64; 6], other: [u64; 6]| {
                std::array::from_fn(|i| (one[i] as i64).min(other[i] as i64) as u64)
            };
            let known = all_reduce(
                comm,
                search.known().map(|took| took.as_nanos() as u64),
                least,
            )
            .await?;
            search.learn(known.map(|nanos| Duration::from_nanos(nanos as i64)));
            if !search.has_another_pass() {
                return Ok(Self::from_levels(search.least()));
            }
        }
    }
}
