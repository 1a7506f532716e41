//! Counts, for a collective operation, the enters that each exit is too early for, without
//! examining every pair.
//!
//! An exit is too early for an enter that is later than the exit less the latency. First, all
//! enters are counted with the latency between nodes. Then those of the same node are subtracted,
//! and added with the latency within the node; and so on down to the member itself, which is only
//! subtracted, as it does not wait for itself. Each count is done by sorting.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::{EventId, Member, Pattern, Place, Relations, Trace};

/// Member of a collective operation, with its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    pub(crate) place: Place,
    pub(crate) enter: Option<(EventId, i64)>,
    pub(crate) exit: Option<(EventId, i64)>,
}

/// Counter that reuses its memory from one operation to the next.
#[derive(Debug, Default)]
pub(crate) struct LateCounter {
    /// Number of enters that the exit of each rank is too early for.
    late: Vec<i64>,
    /// Ranks, sorted so that those that are counted together are adjacent.
    order: Vec<usize>,
    enters: Vec<i64>,
    tree: Vec<i64>,
}

impl Party {
    pub(crate) fn new(
        member: Member,
        trace: &Trace,
        time: impl Fn(EventId) -> Timestamp<Global>,
    ) -> Self {
        let at = |event: u32| {
            let event = EventId {
                location: member.location,
                event,
            };
            (event, time(event).as_nanos())
        };
        let place = trace.locations()[member.location.index()].place();
        Self {
            place,
            enter: member.enter.map(at),
            exit: member.exit.map(at),
        }
    }

    /// Returns the minimum latency of a message to another member.
    fn latency(&self, other: &Self, latencies: [i64; 3]) -> i64 {
        match (
            self.place.node == other.place.node,
            self.place.process == other.place.process,
        ) {
            (true, true) => latencies[0],
            (true, false) => latencies[1],
            (false, _) => latencies[2],
        }
    }
}

/// Returns true if an exit depends only on enters of lower ranks.
fn in_ranks(pattern: Pattern) -> bool {
    pattern == Pattern::ToLater
}

impl LateCounter {
    /// Returns the number of dependences, and for every rank the number of enters that its exit is
    /// too early for; an empty slice if there are none.
    pub(super) fn count(
        &mut self,
        parties: &[Party],
        pattern: Pattern,
        latencies: [i64; 3],
    ) -> (Relations, &[i64]) {
        self.late.clear();
        let mut found = Relations {
            total: total(parties, in_ranks(pattern)),
            ..Relations::default()
        };
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
        found.reversed = self.sum(parties, pattern, [0; 3]);
        found.violated = self.sum(parties, pattern, latencies);
        (found, &self.late)
    }

    fn sum(&mut self, parties: &[Party], pattern: Pattern, latencies: [i64; 3]) -> u64 {
        self.late.clear();
        self.late.resize(parties.len(), 0);
        let [process, node, beyond] = latencies;
        let in_ranks = in_ranks(pattern);
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..parties.len());
        self.add(parties, &order, in_ranks, beyond, 1);
        let of_node = |rank: &usize| parties[*rank].place.node;
        let of_process = |rank: &usize| (parties[*rank].place.node, parties[*rank].place.process);
        if node != beyond {
            order.sort_by_key(of_node);
            for group in order.chunk_by(|a, b| of_node(a) == of_node(b)) {
                self.add(parties, group, in_ranks, beyond, -1);
                self.add(parties, group, in_ranks, node, 1);
            }
        }
        if process != node {
            order.sort_by_key(of_process);
            for group in order.chunk_by(|a, b| of_process(a) == of_process(b)) {
                self.add(parties, group, in_ranks, node, -1);
                self.add(parties, group, in_ranks, process, 1);
            }
        }
        for rank in 0..parties.len() {
            self.add(parties, &[rank], in_ranks, process, -1);
        }
        self.order = order;
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
fn total(parties: &[Party], in_ranks: bool) -> u64 {
    let enters = parties.iter().filter(|party| party.enter.is_some()).count() as u64;
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
                .saturating_add(party.latency(&parties[rank], latencies))
                .saturating_sub(received);
            (by > 0).then_some((send, receive, Duration::from_nanos(by)))
        })
}
