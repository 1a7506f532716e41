//! Minimum latencies of messages. The messages of two processes are processed by one rank, in the
//! same order as if it had the whole trace.

use std::collections::BTreeMap;

use downbeat_clock_core::{Duration, Timestamp};

use super::super::latencies::round_trips::{Arrival, EndpointPair, RoundTrips};
use super::super::{EventId, Latencies, LocationId};
use super::TracePart;
use super::exchange::{boxes, exchange, others};
use super::part::{event_of, word_of};
use super::verdict::{messages, sent_elsewhere};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Message of a pair that is processed on this rank.
struct Met {
    from: u32,
    to: u32,
    arrival: Arrival,
}

impl Met {
    fn pair(&self, part: &TracePart) -> Option<(EndpointPair, usize)> {
        let [from, to] = [self.from, self.to].map(|location| part.trace.site(LocationId(location)));
        EndpointPair::between(from, to)
    }
}

impl Latencies {
    /// Does the same as [`measured`](Self::measured) for a trace that ranks share; collective, with
    /// the same result on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn measured_in_part<C: Comm>(part: &TracePart, comm: &C) -> Result<Self, CommError> {
        if comm.size() == 1 {
            return Ok(Self::measured(&part.trace));
        }
        let mut met = meet(part, comm).await?;
        // Messages received by one location keep its order.
        met.sort_by_key(|Met { to, arrival, .. }| (arrival.received, *to));
        let mut trips = RoundTrips::default();
        loop {
            for message in &met {
                if let Some((pair, way)) = message.pair(part) {
                    trips.add(pair, way, message.arrival);
                }
            }
            let least = |one: [u64; 6], other: [u64; 6]| {
                std::array::from_fn(|i| (one[i] as i64).min(other[i] as i64) as u64)
            };
            let known = all_reduce(
                comm,
                trips.known().map(|took| took.as_nanos() as u64),
                least,
            )
            .await?;
            trips.learn(known.map(|nanos| Duration::from_nanos(nanos as i64)));
            if !trips.has_another_pass() {
                return Ok(Self::from_levels(trips.least()));
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
        let found = Met {
            from,
            to: location.0,
            arrival: Arrival {
                sent,
                received,
                waited,
            },
        };
        let Some((
            EndpointPair {
                level,
                ends: [first, _],
            },
            _,
        )) = found.pair(part)
        else {
            continue;
        };
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
        all.push(Met {
            from,
            to,
            arrival: Arrival {
                sent,
                received,
                waited: Duration::from_nanos(waited),
            },
        });
    }
    Ok(all)
}
