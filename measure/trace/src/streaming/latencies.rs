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
use super::{Census, Link, Linked, UnderWay};

/// Messages of a pair, in order, with their directions.
type HeldMessages = BTreeMap<(Timestamp<Global>, EventId), (usize, Arrival)>;

/// Computes [`Latencies::measured`] of a stream.
///
/// Messages of two processes are needed in the order of their measured receive times. So each
/// message is held until the clocks of all receiving locations have passed that time.
#[derive(Debug)]
pub struct StreamedLatencies<'a> {
    census: &'a Census,
    sent: UnderWay<(u32, Timestamp<Global>)>,
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
    /// Collective operations, if messages do not show the latencies of all levels.
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
            sent: UnderWay::none(census),
            last: vec![None; census.ids().len()],
            missing: census.received.clone(),
            receivers,
            held: FxHashMap::default(),
            search: TripSearch::default(),
            states: FxHashMap::default(),
            stays: None,
        }
    }

    /// Takes the next event and its time. `note` keeps numbers for a second pass over messages.
    ///
    /// # Errors
    /// Those of `note`.
    pub fn take<E>(
        &mut self,
        event: Linked,
        time: Timestamp<Global>,
        mut note: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let location = event.id.location.0;
        let before = self.last[location as usize].replace(time);
        match event.link {
            Link::Send { message } => {
                self.sent.insert(message, (location, time));
            }
            Link::Receive { message } => {
                self.missing[location as usize] -= 1;
                let Some((from, sent)) = self.sent.remove(message) else {
                    return Ok(());
                };
                let [from, to] = [from, location].map(|location| self.census.site(location));
                let Some((pair, way)) = EndpointPair::between(from, to) else {
                    return Ok(());
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
                    note_arrival(pair, way, arrival, &mut note)?;
                }
            }
            _ => {}
        }
        Ok(())
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

    /// Ends the pass over all events. Returns true if the operations have to be taken in another one.
    /// Before that, messages are taken again, if needed: `recall` returns the numbers that `note` has
    /// kept, in their order.
    ///
    /// # Errors
    /// Those of `note` and `recall`.
    pub fn end_pass<E, N>(
        &mut self,
        notes: &mut N,
        mut note: impl FnMut(&mut N, u64) -> Result<(), E>,
        mut recall: impl FnMut(&mut N) -> Result<Option<u64>, E>,
    ) -> Result<bool, E> {
        for (pair, held) in self.held.drain() {
            let state = self.states.entry(pair).or_default();
            for (way, arrival) in held.into_values() {
                self.search.add(state, pair.level, way, arrival);
                note_arrival(pair, way, arrival, |number| note(notes, number))?;
            }
        }
        for (pair, state) in self.states.drain() {
            self.search.end(pair, &state);
        }
        if self.search.has_another_pass() {
            while let Some((pair, way, arrival)) = recalled(|| recall(notes))? {
                let state = self.states.entry(pair).or_default();
                self.search.add(state, pair.level, way, arrival);
            }
        }
        let lacks_levels = is_incomplete(&self.search.least(), self.census.levels());
        let are_needed = lacks_levels && self.census.collectives > 0;
        self.stays = are_needed.then(Default::default);
        Ok(are_needed)
    }

    /// Takes the next event in the pass over operations.
    pub fn take_operation(&mut self, event: Linked, time: Timestamp<Global>) {
        if let Some((stays, search)) = &mut self.stays {
            let of_operation = stays.take(self.census, event, time);
            let stays = of_operation.into_iter();
            stays.for_each(|mut of| search.add(&mut of));
        }
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

/// Keeps a message as numbers.
fn note_arrival<E>(
    pair: EndpointPair,
    way: usize,
    arrival: Arrival,
    mut note: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let [one, other] = pair.ends;
    note((pair.level << 1 | way) as u64)?;
    note(u64::from(one) << 32 | u64::from(other))?;
    note(arrival.received.as_nanos() as u64)?;
    note(arrival.sent.as_nanos() as u64)
}

/// Returns the next message that was kept, without the time that was waited for it.
fn recalled<E>(
    mut recall: impl FnMut() -> Result<Option<u64>, E>,
) -> Result<Option<(EndpointPair, usize, Arrival)>, E> {
    let Some(level_and_way) = recall()? else {
        return Ok(None);
    };
    let mut next = || Ok(recall()?.unwrap_or_default());
    let ends = next()?;
    let pair = EndpointPair {
        level: (level_and_way >> 1) as usize,
        ends: [(ends >> 32) as u32, ends as u32],
    };
    let [received, sent] = [next()?, next()?].map(|time| Timestamp::from_nanos(time as i64));
    let arrival = Arrival {
        sent,
        received,
        waited: Duration::ZERO,
    };
    Ok(Some((pair, (level_and_way & 1) as usize, arrival)))
}
