//! Latencies of messages from round trips, in which the clock offset that lengthens one direction
//! shortens the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::{Latencies, Site};
use crate::trace::Role;
use crate::{LocationId, Trace};

/// Maximum interruption of a round trip, as a multiple of its duration.
const NEAR: i64 = 10_000;

/// Message that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) sent: Timestamp<Global>,
    pub(crate) received: Timestamp<Global>,
    /// Time that the receiver had been idle.
    pub(crate) waited: Duration,
}

/// Minimum durations of the messages of a level.
#[derive(Clone, Copy, Debug, Default)]
struct LevelTimes {
    one_way: Option<Duration>,
    round_trip: Option<Duration>,
}

/// Minimum durations of the messages of a pair in either direction, within a window of time.
#[derive(Clone, Copy, Debug, Default)]
struct TripWindow {
    number: i64,
    least: [Option<Duration>; 2],
}

impl Latencies {
    /// Estimates the minimum latency of each level from the messages of a trace.
    ///
    /// If every message of a level seems to take a positive time, the shortest one is taken.
    /// Otherwise clocks are wrong, and one-way durations are meaningless. In that case the estimate
    /// is half of the shortest round trip, less a tenth: a round trip is a message and one back, so
    /// that clock offsets cancel. A round trip counts if each receiver had waited, without another
    /// event, for at least a quarter of its duration, and if it was not interrupted for more than
    /// 10,000 times its duration: so clocks that gain 10 ppm on each other do not lengthen the
    /// estimate by more than that tenth. The shortest messages in both directions within as long a
    /// time count as a round trip, too.
    ///
    /// The estimate is below the true latency if messages take the same time in both directions,
    /// and if some in either direction were waited for. It is too large, which does harm, if in
    /// every pair of processes all messages of one direction are delayed in a way that no message
    /// reveals. A single message may also be faster if few others are nearly as fast, as on
    /// overloaded cores.
    ///
    /// Collective operations are ignored. A level without messages, or without round trips if
    /// clocks are wrong, has no latency, or that of the level below. A latency that is longer than
    /// that of the next level is reduced to it.
    pub fn measured(trace: &Trace) -> Self {
        let mut trips = RoundTrips::default();
        loop {
            in_order(trace, |from, to, arrival| {
                if let Some((pair, way)) = EndpointPair::between(from, to) {
                    trips.add(pair, way, arrival);
                }
            });
            if !trips.has_another_pass() {
                return Self::from_levels(trips.least());
            }
        }
    }
}

/// Pair of communicating endpoints: the level, and two processes, or two threads of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EndpointPair {
    pub(crate) level: usize,
    pub(crate) ends: [u32; 2],
}

impl EndpointPair {
    /// Returns the pair and the direction; `None` for messages to oneself, which take no time.
    pub(crate) fn between(from: Site, to: Site) -> Option<(Self, usize)> {
        let level = to.level(from)?;
        // Threads of a process are separate endpoints, processes are one each.
        let endpoint = |site: Site| {
            if level == 0 {
                site.location
            } else {
                site.place.process
            }
        };
        let (from, to) = (endpoint(from), endpoint(to));
        Some((
            Self {
                level,
                ends: [from.min(to), from.max(to)],
            },
            usize::from(from > to),
        ))
    }
}

/// Search for the shortest messages and round trips. The messages of each pair must come in order,
/// in up to two passes.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    levels: [LevelTimes; Latencies::LEVELS],
    /// Last message of each pair in either direction.
    last: FxHashMap<EndpointPair, [Option<Arrival>; 2]>,
    /// Length of windows by level, in the second pass.
    lengths: Option<[Option<i64>; Latencies::LEVELS]>,
    windows: FxHashMap<EndpointPair, TripWindow>,
}

impl RoundTrips {
    /// Takes the next message of a pair.
    pub(crate) fn add(&mut self, pair: EndpointPair, way: usize, arrival: Arrival) {
        let level = &mut self.levels[pair.level];
        let Some(lengths) = self.lengths else {
            let last = self.last.entry(pair).or_default();
            last[way] = Some(arrival);
            return level.add(arrival, last[1 - way]);
        };
        let Some(length) = lengths[pair.level] else {
            return;
        };
        let number = arrival.received.as_nanos().div_euclid(length);
        let window = self.windows.entry(pair).or_default();
        if window.number != number {
            *window = TripWindow {
                number,
                ..TripWindow::default()
            };
        }
        lower(&mut window.least[way], arrival.took());
        let [Some(there), Some(back)] = window.least else {
            return;
        };
        if there + back > Duration::ZERO {
            lower(&mut level.round_trip, there + back);
        }
    }

    /// Ends a pass. Returns true if all messages have to be passed again, as the shortest messages
    /// of both directions may be faster than any two that follow each other.
    pub(crate) fn has_another_pass(&mut self) -> bool {
        let lengths = self.levels.map(LevelTimes::window);
        if self.lengths.is_some() || lengths.iter().all(Option::is_none) {
            return false;
        }
        self.last = FxHashMap::default();
        self.lengths = Some(lengths);
        true
    }

    /// Returns the shortest messages and round trips of each level so far; [`Duration::MAX`] if
    /// there are none.
    pub(crate) fn known(&self) -> [Duration; 2 * Latencies::LEVELS] {
        let [process, node, beyond] = self.levels;
        let both = [process, process, node, node, beyond, beyond]
            .map(|level| [level.one_way, level.round_trip]);
        std::array::from_fn(|i| both[i][i % 2].unwrap_or(Duration::MAX))
    }

    /// Adopts the combined results of several searches.
    pub(crate) fn learn(&mut self, known: [Duration; 2 * Latencies::LEVELS]) {
        let known = known.map(|took| Some(took).filter(|took| *took < Duration::MAX));
        for (level, [one_way, round_trip]) in self.levels.iter_mut().zip(known.as_chunks().0) {
            (level.one_way, level.round_trip) = (*one_way, *round_trip);
        }
    }

    pub(crate) fn least(&self) -> [Option<Duration>; Latencies::LEVELS] {
        self.levels.map(LevelTimes::latency)
    }
}

fn lower(least: &mut Option<Duration>, other: Duration) {
    *least = Some(least.map_or(other, |least| least.min(other)));
}

impl Arrival {
    fn took(&self) -> Duration {
        self.received - self.sent
    }

    /// Returns the duration of both messages, if they are a round trip.
    fn after(&self, back: &Self) -> Option<Duration> {
        let both = self.took() + back.took();
        let interrupted = (self.sent - back.received).abs().as_nanos();
        let waited = self.waited.min(back.waited).as_nanos();
        let counts = interrupted / NEAR <= both.as_nanos() && waited >= both.as_nanos() / 4;
        (both > Duration::ZERO && counts).then_some(both)
    }
}

impl LevelTimes {
    /// Takes a message, and the last one before it in the other direction.
    fn add(&mut self, arrival: Arrival, back: Option<Arrival>) {
        lower(&mut self.one_way, arrival.took());
        if let Some(both) = back.and_then(|back| arrival.after(&back)) {
            lower(&mut self.round_trip, both);
        }
    }

    /// Returns true if all messages seem to take a positive time.
    fn is_plain(self) -> bool {
        self.one_way.is_some_and(|took| took > Duration::ZERO)
    }

    /// Returns the length of windows in nanoseconds, if round trips are needed.
    fn window(self) -> Option<i64> {
        self.round_trip
            .filter(|_| !self.is_plain())
            .map(|both| both.as_nanos().saturating_mul(NEAR))
    }

    fn latency(self) -> Option<Duration> {
        // Half of the round trip, less a tenth.
        let round_trip = self
            .round_trip
            .map(|both| Duration::from_nanos(both.as_nanos() / 20 * 9));
        if self.is_plain() {
            self.one_way
        } else {
            round_trip
        }
    }
}

/// Passes all messages in the order in which they were received according to the clocks.
fn in_order(trace: &Trace, mut see: impl FnMut(Site, Site, Arrival)) {
    let time = |location: u32, event: u32| trace.locations[location as usize].times[event as usize];
    let marks = trace.locations.iter().map(|location| location.marks.iter());
    let receives = marks.map(|marks| marks.filter(|mark| mark.role() == Role::Receive).peekable());
    let mut rest: Vec<_> = receives.collect();
    let first = (0..)
        .zip(&mut rest)
        .filter_map(|(to, rest)| Some(Reverse((time(to, rest.peek()?.event), to))));
    let mut next: BinaryHeap<_> = first.collect();
    while let Some(mut top) = next.peek_mut() {
        let Reverse((received, to)) = *top;
        let rest = &mut rest[to as usize];
        if let Some(mark) = rest.next() {
            let from = mark.peer();
            let sent = time(
                from,
                trace.locations[from as usize].marks[mark.partner as usize].event,
            );
            let waited = mark
                .event
                .checked_sub(1)
                .map_or(Duration::ZERO, |before| received - time(to, before));
            let site = |location| trace.site(LocationId(location));
            see(
                site(from),
                site(to),
                Arrival {
                    sent,
                    received,
                    waited,
                },
            );
        }
        match rest.peek() {
            Some(mark) => *top = Reverse((time(to, mark.event), to)),
            None => drop(PeekMut::pop(top)),
        }
    }
}

#[cfg(test)]
mod tests;
