//! Minimum apparent latencies of the messages of a stream.

use std::collections::BTreeMap;

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::latencies::is_incomplete;
use super::super::latencies::pair::{Arrival, EndpointPair};
use super::super::latencies::round_trips::{PairState, TripSearch};
use super::super::latencies::stays::StaySearch;
use super::super::{EventId, Latencies};
use super::stays::StreamedStays;
use super::{Census, Link, Linked};

/// Messages of a pair, in order, with their directions.
type HeldMessages = BTreeMap<(Timestamp<Global>, EventId), (usize, Arrival)>;

/// Computes [`Latencies::measured`] of a stream.
///
/// Messages of two processes are needed in the order of their measured receive times. So each
/// message is held until the clocks of all receiving locations have passed that time.
#[derive(Debug)]
pub struct StreamedLatencies<'a> {
    census: &'a Census,
    sent: FxHashMap<u64, (u32, Timestamp<Global>)>,
    /// Time of the last event of every location.
    last: Vec<Option<Timestamp<Global>>>,
    /// Number of messages that every location will still receive.
    missing: Vec<u64>,
    /// All locations that receive messages, by their processes.
    receivers: FxHashMap<u32, Vec<u32>>,
    /// Held messages.
    held: FxHashMap<EndpointPair, HeldMessages>,
    search: TripSearch,
    states: FxHashMap<EndpointPair, PairState>,
    /// Collective operations, in a pass over these.
    stays: Option<(StreamedStays, StaySearch)>,
}

impl<'a> StreamedLatencies<'a> {
    /// Returns the state before the first event.
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
            search: TripSearch::default(),
            states: FxHashMap::default(),
            stays: None,
        }
    }

    /// Takes the next event and its time.
    pub fn take(&mut self, event: Linked, time: Timestamp<Global>) {
        if let Some((stays, search)) = &mut self.stays {
            let of_operation = stays.take(self.census, event, time);
            return of_operation
                .into_iter()
                .for_each(|mut of| search.add(&mut of));
        }
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
                    let state = self.states.entry(pair).or_default();
                    self.search.add(state, pair.level, way, arrival);
                }
            }
            _ => {}
        }
    }

    /// Returns the time before which no more messages will be received; `None` if none will be
    /// received at all.
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

    /// Ends a pass; returns true if another pass over all events is needed.
    pub fn has_another_pass(&mut self) -> bool {
        if self.stays.is_some() {
            return false;
        }
        for (pair, held) in self.held.drain() {
            let state = self.states.entry(pair).or_default();
            for (way, arrival) in held.into_values() {
                self.search.add(state, pair.level, way, arrival);
            }
        }
        for (pair, state) in self.states.drain() {
            self.search.end(pair, &state);
        }
        self.sent.clear();
        self.last.fill(None);
        self.missing.clone_from(&self.census.received);
        if self.search.has_another_pass() {
            return true;
        }
        let lacks_levels = is_incomplete(&self.search.least(), self.census.levels());
        let are_needed = lacks_levels && self.census.collectives > 0;
        self.stays = are_needed.then(Default::default);
        are_needed
    }

    /// Returns the latencies after the last pass.
    pub fn finish(self) -> Latencies {
        let mut levels = self.search.least();
        if let Some((stays, mut search)) = self.stays {
            stays.finish().for_each(|mut of| search.add(&mut of));
            search.fill(&mut levels);
        }
        Latencies::from_levels(levels)
    }
}
