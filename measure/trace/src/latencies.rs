//! Minimum latencies of messages.

pub(super) mod by_pair;
pub(super) mod cycles;
pub(super) mod pair;
pub(super) mod round_trips;
pub(super) mod stays;

use downbeat_clock_core::Duration;

use rustc_hash::FxHashMap;

use super::{LocationId, Place, Trace};

/// Minimum latency of a message: between threads of one process, between processes of one node, and
/// between nodes.
///
/// A message between locations that share a clock takes no time: the two events have the order of
/// the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Latencies {
    /// Latency of each level, which do not decrease.
    levels: [Duration; Latencies::LEVELS],
    /// True for each level that could not be measured.
    unknown: [bool; Latencies::LEVELS],
}

/// Clock and place of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// First location with this clock.
    pub(super) clock: u32,
    pub(super) place: Place,
}

impl Latencies {
    /// Number of levels.
    pub(super) const LEVELS: usize = 3;

    /// No latency: a message may arrive at the time at which it is sent.
    pub const ZERO: Self = Self {
        levels: [Duration::ZERO; Self::LEVELS],
        unknown: [false; Self::LEVELS],
    };

    /// Creates latencies; `None` if one is negative, or longer than that of the next level.
    pub fn new(same_process: Duration, same_node: Duration, other_node: Duration) -> Option<Self> {
        let levels = [same_process, same_node, other_node];
        let unknown = [false; Self::LEVELS];
        (same_process >= Duration::ZERO && levels.is_sorted()).then_some(Self { levels, unknown })
    }

    /// Creates latencies from measured ones. One that is longer than that of the next level is
    /// reduced to it, and a missing one is set to that of the level below.
    pub(super) fn from_levels(mut least: [Option<Duration>; Self::LEVELS]) -> Self {
        let unknown = least.map(|level| level.is_none());
        let mut beyond = Duration::MAX;
        for level in least.iter_mut().rev().flatten() {
            beyond = beyond.min(*level);
            *level = beyond;
        }
        let mut below = Duration::ZERO;
        Self {
            levels: least.map(|level| {
                below = level.unwrap_or(below);
                below
            }),
            unknown,
        }
    }

    /// Returns the latencies between threads of one process, between processes of one node, and
    /// between nodes.
    pub fn levels(&self) -> [Duration; 3] {
        self.levels
    }

    /// Returns true for each of these levels that could not be measured, so that it is that of the
    /// level below, or 0. If there are messages or collective operations of such a level, they may be
    /// faster after a correction than is possible.
    pub fn unknown(&self) -> [bool; 3] {
        self.unknown
    }

    /// Returns the latency between two locations.
    #[inline]
    pub fn between(&self, trace: &Trace, from: LocationId, to: LocationId) -> Duration {
        self.between_sites(trace.site(from), trace.site(to))
    }

    #[inline]
    pub(super) fn between_sites(&self, from: Site, to: Site) -> Duration {
        to.level(from)
            .map_or(Duration::ZERO, |level| self.levels[level])
    }
}

impl Site {
    /// Returns the level of distance between two locations; `None` if they share a clock.
    #[inline]
    pub(super) fn level(self, other: Self) -> Option<usize> {
        if self.clock == other.clock {
            return None;
        }
        if self.place.node != other.place.node {
            return Some(2);
        }
        Some(usize::from(self.place.process != other.place.process))
    }
}

impl Trace {
    /// Returns true for each level of distance at which there are two different clocks, in the order of
    /// [`Latencies::levels`].
    pub fn levels(&self) -> [bool; 3] {
        let mut found = [false; Latencies::LEVELS];
        let (mut clocks, mut processes) = (FxHashMap::default(), FxHashMap::default());
        let mut first = None;
        for site in self.ids().map(|location| self.site(location)) {
            let Place { node, process } = site.place;
            let clock = *clocks.entry((node, process)).or_insert(site.clock);
            found[0] |= clock != site.clock;
            let (other, clock) = *processes.entry(node).or_insert((process, site.clock));
            found[1] |= other != process && clock != site.clock;
            let (other, clock) = *first.get_or_insert((node, site.clock));
            found[2] |= other != node && clock != site.clock;
        }
        found
    }

    /// Returns the site of a location. Panics if it does not exist, which cannot happen with IDs
    /// from this trace.
    pub(super) fn site(&self, location: LocationId) -> Site {
        let of = &self.locations[location.index()];
        Site {
            clock: of.clock,
            place: of.place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockOwner, Event, Matching, TraceBuilder};
    use downbeat_clock_core::Timestamp;

    fn nanos(levels: [i64; 3]) -> Option<Latencies> {
        let [process, node, other] = levels.map(Duration::from_nanos);
        Latencies::new(process, node, other)
    }

    #[test]
    fn latencies_must_not_decrease_with_distance() {
        assert_eq!(nanos([0, 0, 0]), Some(Latencies::ZERO));
        assert!(nanos([1, 1, 7]).is_some());
        assert_eq!(nanos([2, 1, 7]), None);
        assert_eq!(nanos([-1, 1, 7]), None);
    }

    /// Measures messages with these latencies from location 0 to others: 1 is in its process, 2 on
    /// its node, 3 on another.
    fn measured(messages: &[(usize, i64)]) -> Latencies {
        let mut builder = TraceBuilder::new(Matching {
            clock_of: ClockOwner::Location,
            ..Matching::default()
        });
        let places =
            [(0, 0), (0, 0), (0, 1), (1, 2)].map(|(node, process)| Place { node, process });
        let ids = places.map(|place| builder.add_location(place).unwrap());
        let communicator = builder.add_communicator(&ids).unwrap();
        for (i, (to, took)) in messages.iter().enumerate() {
            let sent = i as i64 * 1_000;
            let [from, to] = [ids[0], ids[*to]];
            builder
                .push(
                    from,
                    Timestamp::from_nanos(sent),
                    Event::Send {
                        to: to.into(),
                        communicator: communicator.into(),
                        tag: 0,
                        request: None,
                        bytes: None,
                    },
                )
                .unwrap();
            let received = Timestamp::from_nanos(sent + took);
            builder
                .push(
                    to,
                    received,
                    Event::Receive {
                        from: from.into(),
                        communicator: communicator.into(),
                        tag: 0,
                        request: None,
                        bytes: None,
                    },
                )
                .unwrap();
        }
        Latencies::measured(&builder.finish().unwrap())
    }

    #[test]
    fn the_smallest_plausible_latency_of_each_level_is_measured() {
        assert_eq!(
            Some(measured(&[
                (1, 9),
                (1, 5),
                (2, 60),
                (2, 50),
                (3, 700),
                (3, 900)
            ])),
            nanos([5, 50, 700])
        );
        let found = measured(&[(1, 9), (1, 5), (2, 60), (2, -7), (2, 50), (3, 700)]);
        assert_eq!(found.levels().map(Duration::as_nanos), [5, 5, 700]);
        assert_eq!(found.unknown(), [false, true, false]);
        let found = measured(&[(1, 9), (2, 50), (3, 0), (3, 700)]);
        assert_eq!(found.levels().map(Duration::as_nanos), [9, 50, 50]);
        assert_eq!(found.unknown(), [false, false, true]);
    }

    #[test]
    fn missing_and_unordered_levels_are_adjusted() {
        let levels = |messages: &[(usize, i64)]| {
            let found = measured(messages);
            (found.levels().map(Duration::as_nanos), found.unknown())
        };
        assert_eq!(levels(&[]), ([0; 3], [true; 3]));
        assert_eq!(levels(&[(2, 50)]), ([0, 50, 50], [true, false, true]));
        assert_eq!(levels(&[(1, 90), (3, 50)]), ([50; 3], [false, true, false]));
        assert_eq!(
            Some(measured(&[(1, 90), (2, 100), (3, 50)])),
            nanos([50, 50, 50])
        );
    }

    #[test]
    fn a_message_within_a_clock_takes_no_time() {
        let of = |clock_of| {
            let mut builder = TraceBuilder::new(Matching {
                clock_of,
                ..Matching::default()
            });
            builder
                .add_location(Place {
                    node: 0,
                    process: 0,
                })
                .unwrap();
            builder
                .add_location(Place {
                    node: 0,
                    process: 0,
                })
                .unwrap();
            builder.finish().unwrap()
        };
        let latencies = nanos([3, 4, 5]).unwrap();
        for (owner, expected) in [(ClockOwner::Location, 3), (ClockOwner::Process, 0)] {
            let trace = of(owner);
            let ids: Vec<LocationId> = trace.ids().collect();
            let [own, other] = [0, 1].map(|to| latencies.between(&trace, ids[0], ids[to]));
            assert_eq!([own, other].map(Duration::as_nanos), [0, expected]);
        }
    }
}
