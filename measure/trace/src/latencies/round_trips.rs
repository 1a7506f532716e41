//! Latencies of messages from round trips, in which the clock offset that lengthens one direction
//! shortens the other.

use downbeat_clock_core::Duration;
use downbeat_sync::{ThreadComm, block_on_ready};

use super::Latencies;
use super::by_pair::{MessagesByPair, PairMessages};
use super::cycles::{Shortest, ShortestOfPair};
use super::pair::Arrival;
use crate::Trace;
use crate::encoding::{Merge, merge_all, merged};
use crate::ranks::RankShare;

/// Maximum interruption of a round trip, as a multiple of its duration.
const NEAR: i64 = 10_000;

/// Minimum durations of the messages of a level.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LevelTimes {
    one_way: Option<Duration>,
    pub(crate) round_trip: Option<Duration>,
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
        let (share, comm) = (RankShare::default(), ThreadComm::alone());
        let measured = Self::measured_by_rank(trace, &share, 1, &comm);
        // A single rank sends no messages that could fail.
        block_on_ready(measured).unwrap_or(Self::ZERO)
    }
}

/// Shortest messages and round trips.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trips {
    pub(crate) levels: [LevelTimes; Latencies::LEVELS],
    /// Shortest messages of all pairs.
    pub(crate) pairs: Vec<ShortestOfPair>,
}

merged! {
    Trips { levels, pairs }
    LevelTimes { one_way, round_trip }
}

impl Trips {
    /// Finds the shortest messages, and the round trips of messages that follow each
    /// other, on this number of threads.
    pub(crate) fn find(messages: &mut MessagesByPair<'_>, workers: usize) -> Self {
        let found = messages.each(workers, |pairs| {
            let mut trips = Self::default();
            for (pair, messages) in pairs {
                let least = trips.levels[pair.level].add(messages);
                trips.pairs.push(ShortestOfPair { pair, least });
            }
            trips
        });
        merge_all(found).unwrap_or_default()
    }
}

/// Finds the shortest messages in both directions within windows, whose lengths are given
/// by level: they may be faster than any two that follow each other.
pub(crate) fn find_within_windows(
    messages: &mut MessagesByPair<'_>,
    lengths: [Option<i64>; Latencies::LEVELS],
    workers: usize,
) -> [Option<Duration>; Latencies::LEVELS] {
    let found = messages.each(workers, |pairs| {
        let mut least = [None; Latencies::LEVELS];
        for (pair, messages) in pairs {
            if let Some(length) = lengths[pair.level] {
                least[pair.level].merge(shortest_within(length, messages));
            }
        }
        least
    });
    merge_all(found).unwrap_or_default()
}

/// Returns the shortest two messages of a pair within a window of this length.
fn shortest_within(length: i64, messages: PairMessages<'_>) -> Option<Duration> {
    let mut shortest = None;
    let (mut window, mut least) = (0, [None; 2]);
    for (way, arrival) in messages {
        let number = arrival.received.as_nanos().div_euclid(length);
        if window != number {
            (window, least) = (number, [None; 2]);
        }
        least[way].merge(Some(arrival.took()));
        let [Some(there), Some(back)] = least else {
            continue;
        };
        if there + back > Duration::ZERO {
            shortest.merge(Some(there + back));
        }
    }
    shortest
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
    /// Takes the messages of a pair in their order. Returns the shortest ones in both
    /// directions.
    fn add(&mut self, messages: PairMessages<'_>) -> [Option<Shortest>; 2] {
        let (mut last, mut least) = ([None; 2], [None; 2]);
        for (way, arrival) in messages {
            last[way] = Some(arrival);
            let (took, waited) = (arrival.took(), arrival.waited);
            let shortest = least[way].get_or_insert(Shortest { took, waited });
            if took < shortest.took {
                *shortest = Shortest { took, waited };
            }
            self.one_way.merge(Some(took));
            let back: Option<Arrival> = last[1 - way];
            self.round_trip
                .merge(back.and_then(|back| arrival.after(&back)));
        }
        least
    }

    /// Returns true if all messages seem to take a positive time.
    fn is_plain(self) -> bool {
        self.one_way.is_some_and(|took| took > Duration::ZERO)
    }

    /// Returns the length of windows in nanoseconds, if round trips are needed.
    pub(crate) fn window(self) -> Option<i64> {
        self.round_trip
            .filter(|_| !self.is_plain())
            .map(|both| both.as_nanos().saturating_mul(NEAR))
    }

    pub(crate) fn latency(self) -> Option<Duration> {
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
