//! Minimum apparent latencies of the messages of a stream.

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::latencies::is_incomplete;
use super::super::latencies::pair::{Arrival, EndpointPair};
use super::super::latencies::round_trips::{PairState, TripSearch};
use super::super::latencies::stays::StaySearch;
use super::super::{EventId, Latencies};
use super::stays::StreamedStays;
use super::{Census, Link, Linked, UnderWay};

/// Pairs of endpoints that exchange messages, which may be many, and messages that are held.
#[derive(Debug, Default)]
struct StreamedPairs {
    numbers: FxHashMap<EndpointPair, u32>,
    /// State of each pair, and its first held message, in parts of a fixed size: a large table that
    /// grows would be in memory twice.
    states: Vec<Vec<(PairState, u32)>>,
    held: Vec<HeldMessage>,
    /// Places of messages that are not held any longer.
    free: Vec<u32>,
}

/// Message that is held, in the order of the messages of its pair.
#[derive(Clone, Copy, Debug)]
struct HeldMessage {
    pair: EndpointPair,
    /// Number of the pair.
    number: u32,
    receive: EventId,
    arrival: Arrival,
    way: u8,
    /// Next message of the pair.
    next: u32,
}

/// No message.
const NO_MESSAGE: u32 = u32::MAX;
/// Number of states in a part of their table.
const STATES: usize = 1 << 12;
/// Number of messages after which those of all pairs are looked through: a pair may have no more messages.
const MESSAGES: u64 = 4_096;

impl StreamedPairs {
    /// Returns the number of a pair.
    fn number(&mut self, pair: EndpointPair, search: &TripSearch) -> usize {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(pair).or_insert(next);
        if number == next {
            if (number as usize).is_multiple_of(STATES) {
                self.states.push(Vec::with_capacity(STATES));
            }
            let last = self.states.last_mut();
            last.into_iter()
                .for_each(|last| last.push((search.begin(), NO_MESSAGE)));
        }
        number as usize
    }

    fn of(&mut self, number: usize) -> &mut (PairState, u32) {
        &mut self.states[number / STATES][number % STATES]
    }

    /// Holds a message of a pair with its number.
    fn hold(
        &mut self,
        (pair, number): (EndpointPair, usize),
        receive: EventId,
        (way, arrival): (usize, Arrival),
    ) {
        let key = |held: &HeldMessage| (held.arrival.received, held.receive);
        let mut held = HeldMessage {
            pair,
            number: number as u32,
            receive,
            arrival,
            way: way as u8,
            next: self.of(number).1,
        };
        // Most messages follow those that are held, which are few.
        let mut before = None;
        while let Some(next) = self.held.get(held.next as usize)
            && key(next) < key(&held)
        {
            before = Some(held.next);
            held.next = next.next;
        }
        let at = match self.free.pop() {
            Some(at) => {
                self.held[at as usize] = held;
                at
            }
            None => {
                self.held.push(held);
                self.held.len() as u32 - 1
            }
        };
        match before {
            Some(before) => self.held[before as usize].next = at,
            None => self.of(number).1 = at,
        }
    }

    /// Takes the first held message of a pair, if it was received before this time.
    fn next(
        &mut self,
        number: usize,
        bound: Option<Timestamp<Global>>,
    ) -> Option<(usize, Arrival)> {
        let first = self.of(number).1;
        let held = *self.held.get(first as usize)?;
        if bound.is_some_and(|bound| held.arrival.received >= bound) {
            return None;
        }
        self.free.push(first);
        self.of(number).1 = held.next;
        Some((held.way.into(), held.arrival))
    }
}

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
    pairs: StreamedPairs,
    search: TripSearch,
    /// Number of messages so far.
    messages: u64,
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
            pairs: StreamedPairs::default(),
            search: TripSearch::default(),
            messages: 0,
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
                let number = self.pairs.number(pair, &self.search);
                self.pairs.hold((pair, number), event.id, (way, arrival));
                self.release((pair, number), bound, &mut note)?;
                self.messages += 1;
                if self.messages.is_multiple_of(MESSAGES) {
                    let bound = self.bound_of_all();
                    for held in 0..self.pairs.held.len() {
                        let HeldMessage { pair, number, .. } = self.pairs.held[held];
                        self.release((pair, number as usize), bound, &mut note)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the held messages of a pair that were received before this time.
    fn release<E>(
        &mut self,
        (pair, number): (EndpointPair, usize),
        bound: Option<Timestamp<Global>>,
        note: &mut impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((way, arrival)) = self.pairs.next(number, bound) {
            let state = &mut self.pairs.of(number).0;
            self.search.add(state, pair.level, way, arrival);
            note_arrival(pair, way, arrival, &mut *note)?;
        }
        Ok(())
    }

    /// Returns the time before which no location will receive any more messages; `None` if none will.
    fn bound_of_all(&self) -> Option<Timestamp<Global>> {
        let all = self.last.iter().zip(&self.missing);
        let waiting = all.filter(|(_, missing)| **missing > 0);
        waiting
            .map(|(last, _)| last.unwrap_or(Timestamp::from_nanos(i64::MIN)))
            .min()
    }

    /// Returns the time before which no more messages of a pair will be received; `None` if none will
    /// be received at all.
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
        let numbers = core::mem::take(&mut self.pairs.numbers);
        for (pair, number) in &numbers {
            let number = *number as usize;
            self.release((*pair, number), None, &mut |number| note(notes, number))?;
        }
        // Cycles of messages are only searched for levels that pairs do not show.
        if numbers
            .iter()
            .any(|(pair, _)| self.search.lacks(pair.level))
        {
            for (pair, number) in &numbers {
                let (state, _) = self.pairs.of(*number as usize);
                self.search.end(*pair, state);
            }
        }
        self.pairs = StreamedPairs::default();
        if self.search.has_another_pass() {
            while let Some((pair, way, arrival)) = recalled(|| recall(notes))? {
                let number = self.pairs.number(pair, &self.search);
                let state = &mut self.pairs.of(number).0;
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
