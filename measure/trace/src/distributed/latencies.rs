//! Minimum latencies of messages. The messages of two processes are processed by one rank, in the
//! same order as if it had the whole trace.

use std::collections::BTreeMap;

use downbeat_clock_core::{Duration, Timestamp};

use super::super::latencies::by_pair::MessagesByPair;
use super::super::latencies::cycles::{Shortest, ShortestOfPair};
use super::super::latencies::pair::EndpointPair;
use super::super::latencies::round_trips::TripSearch;
use super::super::latencies::stays::{Stay, StaySearch};
use super::super::latencies::{Site, is_incomplete};
use super::super::{Latencies, Place};
use super::TracePart;
use super::exchange::{boxes, exchange, gather_everywhere, others};
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
                // All ranks know the same levels.
                if search.lacks_levels() {
                    let mine = search.pairs.iter().flat_map(words_of).collect();
                    let all = gather_everywhere(comm, mine).await?;
                    let all = all.iter().flat_map(|words| words.as_chunks().0);
                    search.pairs = all.map(pair_of).collect();
                }
                break;
            }
        }
        let mut levels = search.least();
        if is_incomplete(&levels, part.as_ref().levels()) {
            let mut search = StaySearch::default();
            let stays = part.stays(comm).await?;
            stays.into_values().for_each(|mut of| search.add(&mut of));
            let none = i64::MAX as u64;
            let nanos = |took: Option<Duration>| took.map_or(none, |took| took.as_nanos() as u64);
            let least =
                |one: [u64; 3], other: [u64; 3]| std::array::from_fn(|i| one[i].min(other[i]));
            let found = all_reduce(comm, search.least.map(nanos), least).await?;
            search.least =
                found.map(|nanos| (nanos < none).then(|| Duration::from_nanos(nanos as i64)));
            search.fill(&mut levels);
        }
        Ok(Self::from_levels(levels))
    }
}

impl TracePart {
    /// Collects the stays in collective operations, each of which one rank gets, by the positions of
    /// the operations.
    pub(super) async fn stays<C: Comm>(
        &self,
        comm: &C,
    ) -> Result<BTreeMap<u64, Vec<Stay>>, CommError> {
        let (mut out, mut inbox) = (boxes(comm), boxes(comm));
        self.trace.each_stay(|index, stays| {
            let name = self.names[index];
            let words = &mut out[(name % u64::from(comm.size())) as usize];
            for Stay {
                site,
                entered,
                left,
            } in stays
            {
                let place = u64::from(site.place.node) << 32 | u64::from(site.place.process);
                let times = [*entered, *left].map(|time| time.as_nanos() as u64);
                words.extend([name, place, site.clock.into(), times[0], times[1]]);
            }
        });
        let own = std::mem::take(&mut out[comm.rank() as usize]);
        exchange(comm, &others(comm), &mut out, &mut inbox).await?;
        inbox.push(own);
        let mut by_name: BTreeMap<u64, Vec<Stay>> = BTreeMap::new();
        let all = inbox.iter().flat_map(|words| words.as_chunks().0);
        for [name, place, clock, entered, left] in all {
            let place = Place {
                node: (place >> 32) as u32,
                process: *place as u32,
            };
            let clock = *clock as u32;
            by_name.entry(*name).or_default().push(Stay {
                site: Site { clock, place },
                entered: Timestamp::from_nanos(*entered as i64),
                left: Timestamp::from_nanos(*left as i64),
            });
        }
        Ok(by_name)
    }
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
