//! The smallest latencies that the messages of a stream seem to have.

use std::collections::BTreeMap;

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::latencies::round_trips::{Arrival, EndpointPair, RoundTrips};
use super::super::{EventId, Latencies};
use super::{Census, Link, Linked};

/// Messages of a pair, in order; and which way they go.
type Held = BTreeMap<(Timestamp<Global>, EventId), (usize, Arrival)>;

/// [`Latencies::measured`], of a stream.
///
/// Messages of two processes are needed in the order in which clocks say that they were received. So each is held until
/// the clocks of all who receive there are past that.
#[derive(Debug)]
pub struct StreamedLatencies<'a> {
    census: &'a Census,
    sent: FxHashMap<u64, (u32, Timestamp<Global>)>,
    /// When the last event of every location was.
    last: Vec<Option<Timestamp<Global>>>,
    /// How many messages every location will still receive.
    missing: Vec<u64>,
    /// All locations that receive, by their processes.
    receivers: FxHashMap<u32, Vec<u32>>,
    /// What is held.
    held: FxHashMap<EndpointPair, Held>,
    trips: RoundTrips,
}

impl<'a> StreamedLatencies<'a> {
    /// Of no messages yet.
    pub fn new(census: &'a Census) -> Self {
        let mut receivers = FxHashMap::<_, Vec<u32>>::default();
        for location in (0..)
            .zip(&census.received)
            .filter(|(_, received)| **received > 0)
            .map(|(location, _)| location)
        {
            receivers
                .entry(census.site(location).place.process)
                .or_default()
                .push(location);
        }
        Self {
            census,
            sent: FxHashMap::default(),
            last: vec![None; census.ids().len()],
            missing: census.received.clone(),
            receivers,
            held: FxHashMap::default(),
            trips: RoundTrips::default(),
        }
    }

    /// The next event, and when it was.
    pub fn take(&mut self, event: Linked, time: Timestamp<Global>) {
        let location = event.id.location.0;
        let before = self.last[location as usize].replace(time);
        match event.link {
            Link::Send { message } => {
                self.sent.insert(message, (location, time));
            }
            Link::Receive { message } => {
                self.missing[location as usize] -= 1;
                let Some((from, sent)) = self.sent.remove(&message) else {
                    return;
                };
                let [from, to] = [from, location].map(|location| self.census.site(location));
                let Some((pair, way)) = EndpointPair::between(from, to) else {
                    return;
                };
                let waited = before.map_or(Duration::ZERO, |before| time - before);
                let arrival = Arrival {
                    sent,
                    received: time,
                    waited,
                };
                let bound = self.bound(pair);
                let held = self.held.entry(pair).or_default();
                held.insert((time, event.id), (way, arrival));
                while let Some(next) = held
                    .first_entry()
                    .filter(|next| bound.is_none_or(|bound| next.key().0 < bound))
                {
                    let (way, arrival) = next.remove();
                    self.trips.add(pair, way, arrival);
                }
            }
            _ => {}
        }
    }

    /// Before what time nothing will be received any more; `None` if nothing will be at all.
    fn bound(&self, pair: EndpointPair) -> Option<Timestamp<Global>> {
        let bound = |locations: &[u32]| {
            let receive = locations
                .iter()
                .map(|location| *location as usize)
                .filter(|at| self.missing[*at] > 0);
            receive
                .map(|at| self.last[at].unwrap_or(Timestamp::from_nanos(i64::MIN)))
                .min()
        };
        let bounds = if pair.level == 0 {
            [bound(&pair.ends), None]
        } else {
            pair.ends.map(|process| {
                self.receivers
                    .get(&process)
                    .and_then(|locations| bound(locations))
            })
        };
        bounds.into_iter().flatten().min()
    }

    /// After the last event: whether all events are to come once more.
    pub fn has_another_pass(&mut self) -> bool {
        for (pair, held) in self.held.drain() {
            held.into_values()
                .for_each(|(way, arrival)| self.trips.add(pair, way, arrival));
        }
        self.sent.clear();
        self.last.fill(None);
        self.missing.clone_from(&self.census.received);
        self.trips.has_another_pass()
    }

    /// After the last pass.
    pub fn finish(self) -> Latencies {
        Latencies::from_levels(self.trips.least())
    }
}
