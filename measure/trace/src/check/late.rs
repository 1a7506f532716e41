//! Counts, for a collective operation, the enters that each exit is too early for, without
//! examining every pair.
//!
//! An exit is too early for an enter that is later than the exit less the latency. First, all
//! enters are counted with the latency between nodes. Then those of the same node are subtracted,
//! and added with the latency within the node; and so on down to the members with the same clock,
//! which are only subtracted, as a clock does not wait for itself. Each count is done by sorting.

use downbeat_clock_core::Duration;

use super::relations::{RelationCounts, Violation, WithinClocks};
use crate::extremes::Extremes;
use crate::latencies::{Latencies, Site};
use crate::member_times::MemberTimes;
use crate::{ClockOwner, CollectiveKind, DependencePattern};

/// Counter that reuses its memory from one operation to the next.
#[derive(Debug)]
pub(crate) struct LateCounter {
    /// Members that share clocks.
    owner: ClockOwner,
    /// Number of enters that the exit of each rank is too early for.
    late: Vec<i64>,
    /// Ranks, sorted so that those that are counted together are adjacent.
    order: Vec<usize>,
    enters: Vec<i64>,
    tree: Vec<i64>,
}

/// Returns true if an exit depends only on enters of lower ranks.
fn in_ranks(pattern: DependencePattern) -> bool {
    pattern == DependencePattern::ToLater
}

impl LateCounter {
    /// Returns a counter for members of which these share clocks.
    pub(crate) const fn new(owner: ClockOwner) -> Self {
        Self {
            owner,
            late: vec![],
            order: vec![],
            enters: vec![],
            tree: vec![],
        }
    }

    /// Returns the numbers of dependences between clocks and within them, and for every
    /// rank the number of enters of other clocks that its exit is too early for; an empty
    /// slice if there are none.
    pub(super) fn count(
        &mut self,
        members: &[MemberTimes],
        pattern: DependencePattern,
        latencies: [i64; 3],
    ) -> (RelationCounts, WithinClocks, &[i64]) {
        self.late.clear();
        let in_ranks = in_ranks(pattern);
        let (mut across, mut within) = (RelationCounts::default(), WithinClocks::default());
        within.total = self.within(members, in_ranks);
        across.total = total(members.iter(), in_ranks) - within.total;
        let enters = members.iter().filter_map(|member| member.enter);
        let latest = enters.map(|(_, at)| at.saturating_add(latencies[2])).max();
        let exits = members.iter().filter_map(|member| member.exit);
        let earliest = exits.map(|(_, at)| at).min();
        // The usual case is that every exit is late enough.
        if latest
            .zip(earliest)
            .is_some_and(|(latest, earliest)| latest > earliest)
        {
            if within.total > 0 {
                within.reversed = self.reversed_within(members, in_ranks);
            }
            across.reversed = self.sum(members, in_ranks, [0; 3]);
            across.violated = self.sum(members, in_ranks, latencies);
        }
        (across, within, &self.late)
    }

    /// Returns the number of levels above that of clocks: the cluster, nodes, processes.
    const fn depth(&self) -> usize {
        // Owners are in the order of their sizes.
        ClockOwner::Cluster as usize - self.owner as usize
    }

    /// Calls `see` with the ranks of each group of members of the same place: 0 for the
    /// cluster, 1 for nodes, 2 for processes, 3 for locations. That of the depth is the
    /// same clock.
    fn each_group(
        &mut self,
        members: &[MemberTimes],
        level: usize,
        mut see: impl FnMut(&mut Self, &[usize]),
    ) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..members.len());
        let group = |rank: &usize| {
            let Site { clock, place } = members[*rank].site;
            match level {
                0 => (0, 0),
                1 => (place.node, 0),
                2 => (place.node, place.process),
                _ => (clock, 0),
            }
        };
        order.sort_by_key(group);
        for ranks in order.chunk_by(|a, b| group(a) == group(b)) {
            see(self, ranks);
        }
        self.order = order;
    }

    /// Returns the number of dependences between members with the same clock.
    fn within(&mut self, members: &[MemberTimes], in_ranks: bool) -> u64 {
        let mut within = 0;
        if self.owner != ClockOwner::Location {
            self.each_group(members, self.depth(), |_, group| {
                let group = group.iter().map(|rank| &members[*rank]);
                within += total(group, in_ranks);
            });
        }
        within
    }

    /// Returns the number of those with exits before enters.
    fn reversed_within(&mut self, members: &[MemberTimes], in_ranks: bool) -> u64 {
        self.begin(members.len());
        self.each_group(members, self.depth(), |this, group| {
            this.add(members, group, in_ranks, 0, 1);
            for rank in group {
                this.add(members, &[*rank], in_ranks, 0, -1);
            }
        });
        self.sum_up()
    }

    /// Returns the number of enters of other clocks that exits are too early for.
    fn sum(
        &mut self,
        members: &[MemberTimes],
        in_ranks: bool,
        [process, node, beyond]: [i64; 3],
    ) -> u64 {
        self.begin(members.len());
        let (depth, latencies) = (self.depth(), [beyond, node, process]);
        for level in 0..=depth {
            let counted = level.checked_sub(1).map(|above| latencies[above]);
            let latency = latencies.get(level).filter(|_| level < depth).copied();
            if counted != latency {
                self.each_group(members, level, |this, group| {
                    for (latency, sign) in [(counted, -1), (latency, 1)] {
                        if let Some(latency) = latency {
                            this.add(members, group, in_ranks, latency, sign);
                        }
                    }
                });
            }
        }
        self.sum_up()
    }

    fn begin(&mut self, members: usize) {
        self.late.clear();
        self.late.resize(members, 0);
    }

    fn sum_up(&self) -> u64 {
        self.late.iter().map(|late| late.unsigned_abs()).sum()
    }

    /// Adds, for every exit of a group, `sign` times the number of enters of the group that it is
    /// too early for.
    fn add(
        &mut self,
        members: &[MemberTimes],
        group: &[usize],
        in_ranks: bool,
        latency: i64,
        sign: i64,
    ) {
        self.enters.clear();
        let enters = group.iter().filter_map(|rank| members[*rank].enter);
        self.enters.extend(enters.map(|(_, at)| at));
        self.enters.sort_unstable();
        let bound = |rank: usize| members[rank].exit.map(|(_, at)| at.saturating_sub(latency));
        if !in_ranks {
            for rank in group {
                let Some(bound) = bound(*rank) else { continue };
                let in_time = self.enters.partition_point(|enter| *enter <= bound);
                self.late[*rank] += sign * (self.enters.len() - in_time) as i64;
            }
            return;
        }
        // Fenwick tree over all enters by their times, which holds those of the ranks that were
        // visited.
        self.tree.clear();
        self.tree.resize(self.enters.len() + 1, 0);
        let mut visited = 0;
        for rank in group {
            if let Some(bound) = bound(*rank) {
                let mut at = self.enters.partition_point(|enter| *enter <= bound);
                let mut in_time = 0;
                while at > 0 {
                    in_time += self.tree[at];
                    at &= at - 1;
                }
                self.late[*rank] += sign * (visited - in_time);
            }
            if let Some((_, enter)) = members[*rank].enter {
                visited += 1;
                let mut at = self.enters.partition_point(|other| *other < enter) + 1;
                while let Some(node) = self.tree.get_mut(at) {
                    *node += 1;
                    at += at & at.wrapping_neg();
                }
            }
        }
    }
}

/// Returns the number of pairs of an enter and a dependent exit.
fn total<'a>(members: impl Iterator<Item = &'a MemberTimes> + Clone, in_ranks: bool) -> u64 {
    let has_enter = |member: &&MemberTimes| member.enter.is_some();
    let enters = members.clone().filter(has_enter).count() as u64;
    let mut visited = 0;
    let mut total = 0;
    for member in members {
        let own = u64::from(member.enter.is_some());
        if member.exit.is_some() {
            total += if in_ranks { visited } else { enters - own };
        }
        visited += own;
    }
    total
}

/// Returns the largest amount by which an exit is too early for an enter of another
/// clock.
pub(super) fn largest_violation(
    members: &[MemberTimes],
    pattern: DependencePattern,
    latencies: &Latencies,
) -> Duration {
    let mut senders = Extremes::NONE;
    let add = |senders: &mut Extremes, member: &MemberTimes| {
        if let Some((_, sent)) = member.enter {
            senders.add(sent, member.site);
        }
    };
    if !in_ranks(pattern) {
        members.iter().for_each(|member| add(&mut senders, member));
    }
    let mut largest = 0;
    for member in members {
        if let Some((_, received)) = member.exit {
            let reach = senders.reach(member.site, latencies);
            largest = largest.max(reach.saturating_sub(received));
        }
        if in_ranks(pattern) {
            add(&mut senders, member);
        }
    }
    Duration::from_nanos(largest)
}

/// Returns the violation by the exit of `rank`, and the enter of the lowest rank that it
/// is too early for.
pub(super) fn first_fault(
    members: &[MemberTimes],
    rank: usize,
    kind: CollectiveKind,
    latencies: [i64; 3],
) -> Option<Violation> {
    let (receive, received) = members[rank].exit?;
    let senders = match in_ranks(kind.pattern()) {
        true => &members[..rank],
        false => members,
    };
    let mut others = (0..).zip(senders).filter(|(sender, _)| *sender != rank);
    others.find_map(|(_, member)| {
        let (send, sent) = member.enter?;
        let level = member.site.level(members[rank].site)?;
        let by = sent
            .saturating_add(latencies[level])
            .saturating_sub(received);
        (by > 0).then_some(Violation::Early {
            send,
            receive,
            by: Duration::from_nanos(by),
            kind: Some(kind),
        })
    })
}
