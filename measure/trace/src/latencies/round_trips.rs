//! How long messages take, from messages there and back: by as much as clocks make the one seem longer, they make the
//! other seem shorter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use downbeat_clock_core::{Duration, Global, Timestamp};
use rustc_hash::FxHashMap;

use super::{Latencies, Site};
use crate::trace::Role;
use crate::{LocationId, Trace};

/// A round trip may be interrupted for so many times as long as it takes.
const NEAR: i64 = 10_000;

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) sent: Timestamp<Global>,
    pub(crate) received: Timestamp<Global>,
    /// Since when the receiver had done nothing else.
    pub(crate) waited: Duration,
}

/// What messages of a level took at least.
#[derive(Clone, Copy, Debug, Default)]
struct LevelTimes {
    one_way: Option<Duration>,
    round_trip: Option<Duration>,
}

/// What the messages of a pair took at least, either way, within a while.
#[derive(Clone, Copy, Debug, Default)]
struct TripWindow {
    number: i64,
    least: [Option<Duration>; 2],
}

impl Latencies {
    /// The smallest latencies that the messages of a trace seem to have, a level at a time.
    ///
    /// Where every message seems to take some time, the least that one takes. Otherwise clocks are wrong, and what one way
    /// seems to take says nothing. Then it is half of the quickest round trip, a message and one back, less a tenth: what
    /// one clock is ahead of the other cancels. A round trip counts if each receiver had waited for a quarter of it, with
    /// no event in between, and if it was not interrupted for more than 10,000 times as long as it took: so clocks that
    /// gain 10 ppm on each other do not make more of it than that tenth. The quickest message there and the quickest one
    /// back within as long a time count as one, too.
    ///
    /// This is less than what messages take in truth, as long as they take as long one way as the other, and some of
    /// either way were waited for. It is more, and does harm, where clocks or receivers are late in a way that no message
    /// gives away: in every pair of processes, all messages one way. And a single message can be quicker, where few others
    /// are nearly as quick, as on crowded cores.
    ///
    /// Collective operations do not count. A level without messages, or without round trips where clocks are wrong, has no
    /// time, or the latency of the level below. What seems longer on one level than on the next is cut to that.
    pub fn measured(trace: &Trace) -> Self {
        let mut trips = RoundTrips::default();
        loop {
            in_order(trace, |from, to, arrival| {
                if let Some((pair, way)) = EndpointPair::between(from, to) {
                    trips.see(pair, way, arrival);
                }
            });
            if !trips.has_another_pass() {
                return Self::from_levels(trips.least());
            }
        }
    }
}

/// Who sends messages to each other: the level, and two processes, or two threads of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EndpointPair {
    pub(crate) level: usize,
    pub(crate) ends: [u32; 2],
}

impl EndpointPair {
    /// And which way; `None` for messages to oneself, which take no time.
    pub(crate) fn between(from: Site, to: Site) -> Option<(Self, usize)> {
        let level = to.level(from)?;
        // Threads of a process talk as such.
        let of = |site: Site| {
            if level == 0 {
                site.location
            } else {
                site.place.process
            }
        };
        let (from, to) = (of(from), of(to));
        Some((
            Self {
                level,
                ends: [from.min(to), from.max(to)],
            },
            usize::from(from > to),
        ))
    }
}

/// What is found out of messages, which come in the order of each pair, twice.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    levels: [LevelTimes; Latencies::LEVELS],
    /// Of each pair, the last message either way.
    last: FxHashMap<EndpointPair, [Option<Arrival>; 2]>,
    /// The second time, how long windows are.
    lengths: Option<[Option<i64>; Latencies::LEVELS]>,
    windows: FxHashMap<EndpointPair, TripWindow>,
}

impl RoundTrips {
    /// The next message of a pair.
    pub(crate) fn see(&mut self, pair: EndpointPair, way: usize, arrival: Arrival) {
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

    /// When all messages came: whether they are to come again. The quickest one there and the quickest one back can be
    /// quicker than any two that follow each other.
    pub(crate) fn has_another_pass(&mut self) -> bool {
        let lengths = self.levels.map(LevelTimes::window);
        if self.lengths.is_some() || lengths.iter().all(Option::is_none) {
            return false;
        }
        self.last = FxHashMap::default();
        self.lengths = Some(lengths);
        true
    }

    /// What is known so far of each level, one way and both ways; [`Duration::MAX`], where it is nothing.
    pub(crate) fn known(&self) -> [Duration; 2 * Latencies::LEVELS] {
        let [process, node, beyond] = self.levels;
        let both = [process, process, node, node, beyond, beyond]
            .map(|level| [level.one_way, level.round_trip]);
        std::array::from_fn(|i| both[i][i % 2].unwrap_or(Duration::MAX))
    }

    /// What others know, too.
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

    /// How long both messages took, if they are a round trip.
    fn after(&self, back: &Self) -> Option<Duration> {
        let both = self.took() + back.took();
        let interrupted = (self.sent - back.received).abs().as_nanos();
        let waited = self.waited.min(back.waited).as_nanos();
        let counts = interrupted / NEAR <= both.as_nanos() && waited >= both.as_nanos() / 4;
        (both > Duration::ZERO && counts).then_some(both)
    }
}

impl LevelTimes {
    /// A message, and the last one before it that went back.
    fn add(&mut self, arrival: Arrival, back: Option<Arrival>) {
        lower(&mut self.one_way, arrival.took());
        if let Some(both) = back.and_then(|back| arrival.after(&back)) {
            lower(&mut self.round_trip, both);
        }
    }

    /// Whether no message seems to take no time.
    fn is_plain(self) -> bool {
        self.one_way.is_some_and(|took| took > Duration::ZERO)
    }

    /// Within how many nanoseconds messages are a round trip, where that matters.
    fn window(self) -> Option<i64> {
        self.round_trip
            .filter(|_| !self.is_plain())
            .map(|both| both.as_nanos().saturating_mul(NEAR))
    }

    fn latency(self) -> Option<Duration> {
        // Half of it, less a tenth.
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

/// All messages in the order in which clocks say that they were received.
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
