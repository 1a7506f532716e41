//! Minimum latencies of messages. The messages of two processes are processed by one
//! rank, in the same order as if it had the whole trace.

use std::collections::BTreeMap;

use downbeat_clock_core::Duration;

use super::TracePart;
use super::exchange::{empty_boxes, exchange_words, gather_words};
use crate::Latencies;
use crate::latencies::by_pair::MessagesByPair;
use crate::latencies::cycles::{Shortest, ShortestOfPair};
use crate::latencies::is_incomplete;
use crate::latencies::pair::EndpointPair;
use crate::latencies::round_trips::TripSearch;
use crate::latencies::stays::StaySearch;
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

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
        if comm.size() == 1 {
            return Ok(Self::measured_on(&part.trace, workers));
        }
        let trace = &part.trace;
        let own = trace.times();
        let ghosts = part.exchange_ghost_times(&own, comm).await?;
        let times = part.times_with_ghosts(&own, &ghosts);
        let mut messages = MessagesByPair::new(trace, &times, workers);
        // The messages of a pair go to the rank of its first location, or of its first
        // process.
        let mut owners = BTreeMap::new();
        for (location, owner) in trace.locations().iter().zip(&part.owners) {
            owners.entry(location.place().process).or_insert(*owner);
        }
        let rank_of = |EndpointPair { level, ends }: EndpointPair| match level {
            0 => part.owners.get(ends[0] as usize),
            _ => owners.get(&ends[0]),
        };
        let mut out = empty_boxes(comm);
        messages.hand_over(&mut out, |pair| {
            rank_of(pair).copied().filter(|rank| *rank != part.rank)
        });
        let inbox = exchange_words(comm, out).await?;
        inbox.iter().for_each(|words| messages.take_over(words));
        let mut search = TripSearch::default();
        loop {
            search.pass(&mut messages, workers);
            search.learn(least_of_ranks(search.known(), comm).await?);
            if !search.has_another_pass() {
                // All ranks know the same levels.
                if search.lacks_levels() {
                    let mine = search.pairs.iter().flat_map(words_of).collect();
                    let all = gather_words(comm, mine).await?;
                    let all = all.iter().flat_map(|words| words.as_chunks().0);
                    search.pairs = all.map(pair_of).collect();
                }
                break;
            }
        }
        let mut levels = search.least();
        if is_incomplete(&levels, trace.levels()) {
            let mut search = StaySearch::default();
            trace.each_stay(&times, |stays| search.add(stays));
            let mine = search.least.map(|took| took.unwrap_or(Duration::MAX));
            let least = least_of_ranks(mine, comm).await?;
            search.least = least.map(|took| Some(took).filter(|took| *took < Duration::MAX));
            search.fill(&mut levels);
        }
        Ok(Self::from_levels(levels))
    }
}

/// Returns the least durations of all ranks.
async fn least_of_ranks<C: Comm, const N: usize>(
    mine: [Duration; N],
    comm: &C,
) -> Result<[Duration; N], CommError> {
    let least = |one: [u64; N], other: [u64; N]| {
        std::array::from_fn(|i| (one[i] as i64).min(other[i] as i64) as u64)
    };
    let mine = mine.map(|took| took.as_nanos() as u64);
    let found = all_reduce(comm, mine, least).await?;
    Ok(found.map(|nanos| Duration::from_nanos(nanos as i64)))
}

/// Word for a direction without messages: no duration is as short.
const NO_MESSAGE: u64 = 1 << 63;

fn words_of(ShortestOfPair { pair, least }: &ShortestOfPair) -> [u64; 6] {
    let [one, other] = pair.ends.map(u64::from);
    let words = |least: Option<Shortest>| {
        least.map_or([NO_MESSAGE, 0], |Shortest { took, waited }| {
            [took, waited].map(|span| span.as_nanos() as u64)
        })
    };
    let [[there, waited], [back, waited_back]] = least.map(words);
    let ends = one << 32 | other;
    [pair.level as u64, ends, there, waited, back, waited_back]
}

fn pair_of([level, ends, there, waited, back, waited_back]: &[u64; 6]) -> ShortestOfPair {
    let shortest = |took: u64, waited: u64| {
        let [took, waited] = [took, waited].map(|word| Duration::from_nanos(word as i64));
        Shortest { took, waited }
    };
    let of = |took: u64, waited: u64| (took != NO_MESSAGE).then(|| shortest(took, waited));
    ShortestOfPair {
        pair: EndpointPair {
            level: *level as usize,
            ends: [(ends >> 32) as u32, *ends as u32],
        },
        least: [of(*there, *waited), of(*back, *waited_back)],
    }
}
