//! Counts, for a collective operation, the enters that each exit is too early for, without
//! examining every pair.
//!
//! An exit is too early for an enter that is later than the exit less the latency. First, all
//! enters are counted with the latency between nodes. Then those of the same node are subtracted,
//! and added with the latency within the node; and so on down to the members with the same clock,
//! which are only subtracted, as a clock does not wait for itself. Each count is done by sorting.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::check::Relations;
use super::super::extremes::Extremes;
use super::super::latencies::{Latencies, Site};
use super::super::trace::Slot;
use super::super::{ClockOwner, EventId, LocationId, Pattern, Trace};
use super::relations::WithinClocks;

/// Member of a collective operation, with its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    pub(crate) site: Site,
    pub(crate) enter: Option<(EventId, i64)>,
    pub(crate) exit: Option<(EventId, i64)>,
}

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

impl Party {
    /// Returns the member with its events, at these times.
    pub(super) fn new<T: AsRef<[Timestamp<Global>]>>(
        slot: &Slot,
        trace: &Trace,
        times: &[T],
    ) -> Self {
        let location = LocationId(slot.location);
        let marks = &trace.locations[location.index()].marks;
        let at = |mark: u32| {
            let event = marks.get(mark as usize)?.event;
            let time = times[location.index()].as_ref()[event as usize];
            let id = trace.event_of_ghost(EventId { location, event });
            Some((id, time.as_nanos()))
        };
        Self {
            site: trace.site(location),
            enter: at(slot.enter),
            exit: at(slot.exit),
        }
    }

    /// Returns the minimum latency of a message to another member; `None` if they share a clock.
    fn latency(&self, other: &Self, latencies: [i64; 3]) -> Option<i64> {
        self.site.level(other.site).map(|level| latencies[level])
    }
}

/// Returns true if an exit depends only on enters of lower ranks.
fn in_ranks(pattern: Pattern) -> bool {
    pattern == Pattern::ToLater
}

/// Dependences in a collective operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    /// Between different clocks.
    pub(super) across: Relations,
    pub(super) within: WithinClocks,
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

    /// Returns the number of dependences, and for every rank the number of enters of other clocks
    /// that its exit is too early for; an empty slice if there are none.
    pub(super) fn count(
        &mut self,
        parties: &[Party],
        pattern: Pattern,
        latencies: [i64; 3],
    ) -> (Counted, &[i64]) {
        self.late.clear();
        let in_ranks = in_ranks(pattern);
        let within = self.within(parties, in_ranks);
        let across = Relations {
            total: total(parties.iter(), in_ranks) - within,
            ..Relations::default()
        };
        let within = WithinClocks {
            total: within,
            reversed: 0,
        };
        let mut found = Counted { across, within };
        let latest = parties
            .iter()
            .filter_map(|party| party.enter)
            .map(|(_, at)| at)
            .max();
        let earliest = parties
            .iter()
            .filter_map(|party| party.exit)
            .map(|(_, at)| at)
            .min();
        let (Some(latest), Some(earliest)) = (latest, earliest) else {
            return (found, &self.late);
        };
        // The usual case: every exit is late enough.
        if latest.saturating_add(latencies[2]) <= earliest {
            return (found, &self.late);
        }
        if found.within.total > 0 {
            found.within.reversed = self.reversed_within(parties, in_ranks);
        }
        found.across.reversed = self.sum(parties, in_ranks, [0; 3]);
        found.across.violated = self.sum(parties, in_ranks, latencies);
        (found, &self.late)
    }

    /// Returns the number of levels above that of clocks: the cluster, nodes, processes.
    const fn depth(&self) -> usize {
        match self.owner {
            ClockOwner::Cluster => 0,
            ClockOwner::Node => 1,
            ClockOwner::Process => 2,
            ClockOwner::Location => 3,
        }
    }

    /// Calls `see` with the ranks of each group of members with the same clock.
    fn each_clock(&mut self, parties: &[Party], mut see: impl FnMut(&mut Self, &[usize])) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..parties.len());
        let clock = |rank: &usize| parties[*rank].site.clock;
        if self.owner != ClockOwner::Location {
            order.sort_by_key(clock);
        }
        for group in order.chunk_by(|a, b| clock(a) == clock(b)) {
            see(self, group);
        }
        self.order = order;
    }

    /// Returns the number of dependences between members with the same clock.
    fn within(&mut self, parties: &[Party], in_ranks: bool) -> u64 {
        let mut within = 0;
        if self.owner != ClockOwner::Location {
            self.each_clock(parties, |_, group| {
                let group = group.iter().map(|rank| &parties[*rank]);
                within += total(group, in_ranks);
            });
        }
        within
    }

    /// Returns the number of those with exits before enters.
    fn reversed_within(&mut self, parties: &[Party], in_ranks: bool) -> u64 {
        self.late.clear();
        self.late.resize(parties.len(), 0);
        self.each_clock(parties, |this, group| {
            this.add(parties, group, in_ranks, 0, 1);
            for rank in group {
                this.add(parties, &[*rank], in_ranks, 0, -1);
            }
        });
        self.late.iter().map(|late| late.unsigned_abs()).sum()
    }

    fn sum(&mut self, parties: &[Party], in_ranks: bool, [process, node, beyond]: [i64; 3]) -> u64 {
        self.late.clear();
        self.late.resize(parties.len(), 0);
        let depth = self.depth();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..parties.len());
        if depth > 0 {
            self.add(parties, &order, in_ranks, beyond, 1);
        }
        let place = |rank: &usize| parties[*rank].site.place;
        if depth > 1 && node != beyond {
            order.sort_by_key(|rank| place(rank).node);
            for group in order.chunk_by(|a, b| place(a).node == place(b).node) {
                self.add(parties, group, in_ranks, beyond, -1);
                self.add(parties, group, in_ranks, node, 1);
            }
        }
        if depth > 2 && process != node {
            order.sort_by_key(|rank| (place(rank).node, place(rank).process));
            for group in order.chunk_by(|a, b| place(a) == place(b)) {
                self.add(parties, group, in_ranks, node, -1);
                self.add(parties, group, in_ranks, process, 1);
            }
        }
        self.order = order;
        if let Some(level) = depth.checked_sub(1) {
            let latency = [beyond, node, process][level];
            self.each_clock(parties, |this, group| {
                this.add(parties, group, in_ranks, latency, -1);
            });
        }
        self.late.iter().map(|late| late.unsigned_abs()).sum()
    }

    /// Adds, for every exit of a group, `sign` times the number of enters of the group that it is
    /// too early for.
    fn add(&mut self, parties: &[Party], group: &[usize], in_ranks: bool, latency: i64, sign: i64) {
        self.enters.clear();
        self.enters.extend(
            group
                .iter()
                .filter_map(|rank| parties[*rank].enter)
                .map(|(_, at)| at),
        );
        self.enters.sort_unstable();
        let bound = |rank: usize| parties[rank].exit.map(|(_, at)| at.saturating_sub(latency));
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
            if let Some((_, enter)) = parties[*rank].enter {
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
fn total<'a>(parties: impl Iterator<Item = &'a Party> + Clone, in_ranks: bool) -> u64 {
    let has_enter = |party: &&Party| party.enter.is_some();
    let enters = parties.clone().filter(has_enter).count() as u64;
    let mut visited = 0;
    let mut total = 0;
    for party in parties {
        let own = u64::from(party.enter.is_some());
        if party.exit.is_some() {
            total += if in_ranks { visited } else { enters - own };
        }
        visited += own;
    }
    total
}

/// Returns the largest amount by which an exit is too early for an enter of another
/// clock.
pub(super) fn largest_violation(
    parties: &[Party],
    pattern: Pattern,
    latencies: &Latencies,
) -> Duration {
    let mut senders = Extremes::NONE;
    let add = |senders: &mut Extremes, party: &Party| {
        if let Some((_, sent)) = party.enter {
            senders.add(sent, party.site);
        }
    };
    if !in_ranks(pattern) {
        parties.iter().for_each(|party| add(&mut senders, party));
    }
    let mut largest = 0;
    for party in parties {
        if let Some((_, received)) = party.exit {
            let reach = senders.reach(party.site, latencies);
            largest = largest.max(reach.saturating_sub(received));
        }
        if in_ranks(pattern) {
            add(&mut senders, party);
        }
    }
    Duration::from_nanos(largest)
}

/// Returns the enter of the lowest rank that the exit of `rank` is too early for, that exit, and
/// the amount.
pub(super) fn first_sender(
    parties: &[Party],
    rank: usize,
    pattern: Pattern,
    latencies: [i64; 3],
) -> Option<(EventId, EventId, Duration)> {
    let (receive, received) = parties[rank].exit?;
    let senders = if in_ranks(pattern) {
        &parties[..rank]
    } else {
        parties
    };
    senders
        .iter()
        .enumerate()
        .filter(|(sender, _)| *sender != rank)
        .find_map(|(_, party)| {
            let (send, sent) = party.enter?;
            let by = sent
                .saturating_add(party.latency(&parties[rank], latencies)?)
                .saturating_sub(received);
            (by > 0).then_some((send, receive, Duration::from_nanos(by)))
        })
}
