//! Latencies of messages from round trips, in which the clock offset that lengthens one direction
//! shortens the other.

use downbeat_clock_core::Duration;

use super::by_pair::MessagesByPair;
use super::cycles::{self, Shortest, ShortestOfPair};
use super::pair::{Arrival, EndpointPair};
use super::stays::StaySearch;
use super::{Latencies, is_incomplete};
use crate::Trace;

/// Maximum interruption of a round trip, as a multiple of its duration.
const NEAR: i64 = 10_000;

/// Minimum durations of the messages of a level.
#[derive(Clone, Copy, Debug, Default)]
struct LevelTimes {
    one_way: Option<Duration>,
    round_trip: Option<Duration>,
}

/// Minimum durations of the messages of a pair in either direction, within a window of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TripWindow {
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
    /// If no pair exchanges messages in both directions, cycles of messages between more
    /// processes count like round trips, by the shortest message of each pair.
    ///
    /// If messages show nothing, collective operations do in which all members wait for each other:
    /// the times that the last two members were inside are a round trip, provided that neither is
    /// longer than three times the shortest one of all members. The estimate is half of the shortest
    /// one, less a tenth, divided by the number of steps that such an operation needs: the logarithm
    /// to base 2 of the number of members.
    ///
    /// A level that nothing shows is [unknown](Self::unknown), and taken as that of the level below,
    /// or 0. A latency that is longer than that of the next level is reduced to it.
    pub fn measured(trace: &Trace) -> Self {
        Self::measured_on(trace, 1)
    }

    /// Does the same as [`measured`](Self::measured) on this number of threads.
    pub(crate) fn measured_on(trace: &Trace, workers: usize) -> Self {
        let times = trace.times();
        let mut messages = MessagesByPair::new(trace, &times, workers);
        let mut search = TripSearch::default();
        loop {
            search.pass(&mut messages, workers);
            if !search.has_another_pass() {
                break;
            }
        }
        let mut levels = search.least();
        if is_incomplete(&levels, trace.levels()) {
            let mut search = StaySearch::default();
            trace.each_stay(&times, |stays| search.add(stays));
            search.fill(&mut levels);
        }
        Self::from_levels(levels)
    }
}

/// Messages of a pair that were passed so far. There may be many pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PairState {
    /// In the first pass: the last and the shortest message in either direction, if it was seen.
    Messages {
        seen: [bool; 2],
        last: [Arrival; 2],
        least: [Shortest; 2],
    },
    /// In the second pass: the last window.
    Window(TripWindow),
}

/// Search for the shortest messages and round trips. The messages of each pair must come in order,
/// in up to two passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct TripSearch {
    levels: [LevelTimes; Latencies::LEVELS],
    /// Length of windows by level, in the second pass.
    lengths: Option<[Option<i64>; Latencies::LEVELS]>,
    /// Shortest messages of all pairs.
    pub(crate) pairs: Vec<ShortestOfPair>,
}

impl TripSearch {
    /// Makes a pass over messages, on this number of threads.
    pub(crate) fn pass(&mut self, messages: &mut MessagesByPair<'_>, workers: usize) {
        let (levels, lengths) = (self.levels, self.lengths);
        let found = messages.each(workers, |pairs| {
            let mut search = Self {
                levels,
                lengths,
                pairs: vec![],
            };
            for (pair, messages) in pairs {
                search.add_all(pair, messages);
            }
            search
        });
        found.into_iter().for_each(|found| self.merge(found));
    }

    /// Takes all messages of a pair with their directions, in order.
    fn add_all(
        &mut self,
        pair: EndpointPair,
        messages: impl IntoIterator<Item = (usize, Arrival)>,
    ) {
        let mut state = self.begin();
        for (way, arrival) in messages {
            self.add(&mut state, pair.level, way, arrival);
        }
        self.end(pair, &state);
    }

    /// Begins a pair in a pass.
    pub(crate) fn begin(&self) -> PairState {
        match self.lengths {
            None => PairState::Messages {
                seen: [false; 2],
                last: [Arrival::NONE; 2],
                least: [Shortest::default(); 2],
            },
            Some(_) => PairState::Window(TripWindow::default()),
        }
    }

    /// Ends a pair in a pass.
    pub(crate) fn end(&mut self, pair: EndpointPair, state: &PairState) {
        if let PairState::Messages { seen, least, .. } = state {
            let least = std::array::from_fn(|way| seen[way].then_some(least[way]));
            self.pairs.push(ShortestOfPair { pair, least });
        }
    }

    /// Takes the next message of a pair.
    pub(crate) fn add(
        &mut self,
        state: &mut PairState,
        level: usize,
        way: usize,
        arrival: Arrival,
    ) {
        let times = &mut self.levels[level];
        let window = match state {
            PairState::Messages { seen, last, least } => {
                last[way] = arrival;
                let (took, waited) = (arrival.took(), arrival.waited);
                if !seen[way] || took < least[way].took {
                    least[way] = Shortest { took, waited };
                }
                seen[way] = true;
                return times.add(arrival, seen[1 - way].then_some(last[1 - way]));
            }
            PairState::Window(window) => window,
        };
        let Some(length) = self.lengths.and_then(|lengths| lengths[level]) else {
            return;
        };
        let number = arrival.received.as_nanos().div_euclid(length);
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
            lower(&mut times.round_trip, there + back);
        }
    }

    /// Ends a pass. Returns true if all messages have to be passed again, as the shortest messages
    /// of both directions may be faster than any two that follow each other.
    pub(crate) fn has_another_pass(&mut self) -> bool {
        let lengths = self.levels.map(LevelTimes::window);
        if self.lengths.is_some() || lengths.iter().all(Option::is_none) {
            return false;
        }
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

    /// Merges the results of a search among other pairs.
    fn merge(&mut self, other: Self) {
        let (mine, others) = (self.known(), other.known());
        self.learn(std::array::from_fn(|i| mine[i].min(others[i])));
        self.pairs.extend(other.pairs);
    }

    /// Returns true if messages there and back do not show the latencies of all levels.
    pub(crate) fn lacks_levels(&self) -> bool {
        let mut levels = self.levels.into_iter().map(LevelTimes::latency);
        levels.any(|level| level.is_none())
    }

    pub(crate) fn least(&self) -> [Option<Duration>; Latencies::LEVELS] {
        let mut levels = self.levels.map(LevelTimes::latency);
        cycles::fill(&mut levels, &self.pairs);
        levels
    }
}

fn lower(least: &mut Option<Duration>, other: Duration) {
    *least = Some(least.map_or(other, |least| least.min(other)));
}

impl Arrival {
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

#[cfg(test)]
mod tests;
