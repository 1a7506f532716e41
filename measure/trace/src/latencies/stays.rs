//! Latencies from collective operations whose members all wait for each other: between two members,
//! the time that one of them is inside and that of the other are a round trip, whatever their clocks
//! show.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::{Latencies, Site};
use crate::encoding::{Merge, merged};
use crate::member_times::MemberTimes;
use crate::{DependencePattern, Trace};

merged! { StaySearch { least } }

/// Stay of a member in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) site: Site,
    pub(crate) entered: Timestamp<Global>,
    pub(crate) left: Timestamp<Global>,
}

impl Stay {
    fn took(&self) -> Duration {
        self.left - self.entered
    }
}

/// Shortest latencies of each level so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StaySearch {
    pub(crate) least: [Option<Duration>; Latencies::LEVELS],
}

impl StaySearch {
    /// Takes an operation: all of its members that waited for all others, and the others for them.
    pub(crate) fn add(&mut self, stays: &mut Vec<Stay>) {
        let members = stays.len();
        let Some(shortest) = stays.iter().map(Stay::took).min() else {
            return;
        };
        // Others came early, and waited for the last ones.
        let longest = Duration::from_nanos(shortest.as_nanos().saturating_mul(3));
        stays.retain(|stay| stay.took() <= longest);
        // The members of a node, and of a process, one after the other.
        let group = |stay: &Stay| (stay.site.place.node, stay.site.place.process);
        stays.sort_unstable_by_key(|stay| (group(stay), stay.took(), stay.site.clock));
        let by_node = |one: &Stay, other: &Stay| one.site.place.node == other.site.place.node;
        let by_process = |one: &Stay, other: &Stay| group(one) == group(other);
        // Each message of such an operation may take a step of it.
        let steps = i64::from(members.next_power_of_two().ilog2().max(1));
        let levels = [
            stays
                .chunk_by(by_process)
                .filter_map(|of| both(of, 0))
                .min(),
            stays.chunk_by(by_node).filter_map(|of| both(of, 1)).min(),
            both(stays, 2),
        ];
        for (least, both) in self.least.iter_mut().zip(levels) {
            let latency = both.map(|both| Duration::from_nanos(both.as_nanos() / 20 * 9 / steps));
            least.merge(latency.filter(|latency| *latency > Duration::ZERO));
        }
    }

    /// Fills in the latencies that are unknown.
    pub(crate) fn fill(self, levels: &mut [Option<Duration>; Latencies::LEVELS]) {
        for (level, least) in levels.iter_mut().zip(self.least) {
            *level = level.or(least);
        }
    }
}

/// Returns the shortest stays of two members at this distance together.
fn both(stays: &[Stay], level: usize) -> Option<Duration> {
    let first = stays.iter().min_by_key(|stay| stay.took())?;
    let is_other = |stay: &&Stay| stay.site.level(first.site) == Some(level);
    let other = stays.iter().filter(is_other).map(Stay::took).min()?;
    Some(first.took() + other)
}

impl Trace {
    /// Hands over the stays of the members of each operation whose members wait for each
    /// other, by these times. The vector is emptied in between.
    pub(crate) fn each_stay(
        &self,
        times: &[&[Timestamp<Global>]],
        mut take: impl FnMut(&mut Vec<Stay>),
    ) {
        let is_mutual =
            |at: &usize| self.instances[*at].kind.pattern() == DependencePattern::AllToAll;
        let mutual = (0..self.instances.len()).filter(is_mutual);
        let mut stays = vec![];
        let stay = |member: &MemberTimes| {
            let [entered, left] = [member.enter?, member.exit?].map(|(_, nanos)| nanos);
            Some(Stay {
                site: member.site,
                entered: Timestamp::from_nanos(entered),
                left: Timestamp::from_nanos(left),
            })
        };
        self.store.in_turns(|| {
            self.each_operation(times, mutual, |_, members| {
                stays.clear();
                stays.extend(members.iter().filter_map(stay));
                take(&mut stays);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn stays(all: &[(u32, u32, i64)]) -> Vec<Stay> {
        let all = (0..).zip(all);
        all.map(|(clock, (node, process, nanos))| Stay {
            site: Site {
                clock,
                place: Place {
                    node: *node,
                    process: *process,
                },
            },
            entered: Timestamp::ORIGIN,
            left: Timestamp::from_nanos(*nanos),
        })
        .collect()
    }

    #[test]
    fn the_last_members_to_come_show_the_latency() {
        let mut search = StaySearch::default();
        // Two processes on each of two nodes; two steps.
        search.add(&mut stays(&[
            (0, 0, 3_000),
            (0, 1, 1_000),
            (1, 2, 1_200),
            (1, 3, 9_000),
        ]));
        let nanos = |nanos| Some(Duration::from_nanos(nanos));
        assert_eq!(search.least, [None, nanos(900), nanos(495)]);
        // Members that all waited for a third one show nothing.
        let mut search = StaySearch::default();
        search.add(&mut stays(&[(0, 0, 90_000), (0, 1, 90_000), (1, 2, 100)]));
        assert_eq!(search.least, [None; 3]);
        search.add(&mut stays(&[]));
        search.add(&mut stays(&[(0, 0, 100)]));
        assert_eq!(search.least, [None; 3]);
        let mut levels = [None, nanos(7), None];
        search.least = [nanos(1), nanos(2), nanos(3)];
        search.fill(&mut levels);
        assert_eq!(levels, [nanos(1), nanos(7), nanos(3)]);
    }
}
