//! Minimum latencies of messages. The messages of two processes are processed by one rank, in the
//! same order as if it had the whole trace.

use std::collections::BTreeMap;

use downbeat_clock_core::{Duration, Timestamp};

use super::super::latencies::pair::{Arrival, EndpointPair};
use super::super::latencies::round_trips::TripSearch;
use super::super::{EventId, Latencies, LocationId};
use super::TracePart;
use super::exchange::{boxes, exchange, others};
use super::verdict::{messages, sent_elsewhere};
use super::words::{event_of, word_of};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Message of a pair that is processed on this rank.
struct Met {
    pair: EndpointPair,
    way: usize,
    to: u32,
    arrival: Arrival,
}

impl Met {
    /// Returns the message between two locations; `None` from one to itself.
    fn new(part: &TracePart, [from, to]: [u32; 2], arrival: Arrival) -> Option<Self> {
        let sites = [from, to].map(|location| part.trace.site(LocationId(location)));
        let (pair, way) = EndpointPair::between(sites[0], sites[1])?;
        Some(Self {
            pair,
            way,
            to,
            arrival,
        })
    }
}

impl Latencies {
    /// Does the same as [`measured`](Self::measured) for a trace that ranks share; collective, with
    /// the same result on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn measured_in_part<C: Comm>(part: &TracePart, comm: &C) -> Result<Self, CommError> {
        Self::measured_in_part_on(part, 1, comm).await
    }

    /// Does the same as [`measured_in_part`](Self::measured_in_part); a single rank works on this
    /// number of threads.
    pub(crate) async fn measured_in_part_on<C: Comm>(
        part: &TracePart,
        workers: usize,
        comm: &C,
    ) -> Result<Self, CommError> {
        if comm.size() == 1 {
            return Ok(Self::measured_on(&part.trace, workers));
        }
        let mut met = meet(part, comm).await?;
        // Messages received by one location keep their order.
        met.sort_by_key(
            |Met {
                 pair, to, arrival, ..
             }| (*pair, arrival.received, *to),
        );
        let mut search = TripSearch::default();
        loop {
            for pair in met.chunk_by(|one, other| one.pair == other.pair) {
                search.add_all(pair[0].pair, pair.iter().map(|met| (met.way, met.arrival)));
            }
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

/// Sends messages to the rank of the first location of their pair, or of its first process.
async fn meet<C: Comm>(part: &TracePart, comm: &C) -> Result<Vec<Met>, CommError> {
    let trace = &part.trace;
    let times = trace.times();
    let sent = sent_elsewhere(part, &times, comm).await?;
    let mut owners = BTreeMap::new();
    for (location, owner) in trace.locations().iter().zip(&part.owners) {
        owners.entry(location.place().process).or_insert(*owner);
    }
    let (mut out, mut inbox, mut all) = (boxes(comm), boxes(comm), vec![]);
    for (message, [sent, received]) in messages(part, &times, &sent) {
        let EventId { location, event } = message.receive;
        let before = event
            .checked_sub(1)
            .map(|before| times[location.index()][before as usize]);
        let waited = before.map_or(Duration::ZERO, |before| received - before);
        let from = message.send.location.0;
        let arrival = Arrival {
            sent,
            received,
            waited,
        };
        let Some(found) = Met::new(part, [from, location.0], arrival) else {
            continue;
        };
        let EndpointPair {
            level,
            ends: [first, _],
        } = found.pair;
        let judge = if level == 0 {
            part.owners.get(first as usize)
        } else {
            owners.get(&first)
        };
        match judge.filter(|judge| **judge != part.rank) {
            None => all.push(found),
            Some(judge) => {
                // Both locations share one integer, encoded like an event.
                let ends = word_of(EventId {
                    location: LocationId(from),
                    event: location.0,
                });
                let times = [sent.as_nanos(), received.as_nanos(), waited.as_nanos()]
                    .map(|nanos| nanos as u64);
                out[*judge as usize].push(ends);
                out[*judge as usize].extend(times);
            }
        }
    }
    exchange(comm, &others(comm), &mut out, &mut inbox).await?;
    for [ends, times @ ..] in inbox.iter().flat_map(|words| words.as_chunks::<4>().0) {
        let EventId {
            location: LocationId(from),
            event: to,
        } = event_of(*ends);
        let [sent, received, waited] = times.map(|nanos| nanos as i64);
        let [sent, received] = [sent, received].map(Timestamp::from_nanos);
        let waited = Duration::from_nanos(waited);
        all.extend(Met::new(
            part,
            [from, to],
            Arrival {
                sent,
                received,
                waited,
            },
        ));
    }
    Ok(all)
}
