//! How many exits of a collective operation are too early for how many enters, without looking at every pair.
//!
//! An exit is too early for those enters that are later than it is, less the latency from there. All are counted first with the
//! latency between nodes; then those of the same node are taken back, and counted with the latency within it; and so on
//! down to the member itself, which is taken back, since it waits for nobody. To count is to sort.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::{EventId, Member, Pattern, Place, Relations, Trace};

/// A member of a collective operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Party {
    pub(crate) place: Place,
    pub(crate) enter: Option<(EventId, i64)>,
    pub(crate) exit: Option<(EventId, i64)>,
}

/// Keeps its memory from one operation to the next.
#[derive(Debug, Default)]
pub(crate) struct LateCounter {
    /// For each rank, the number of enters that its exit is too early for.
    late: Vec<i64>,
    /// Ranks, those that are counted together being neighbours, in order.
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

    /// How long a message to another party takes at least.
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

/// Whether only enters of lower ranks come before an exit.
fn in_ranks(pattern: Pattern) -> bool {
    pattern == Pattern::ToLater
}

impl LateCounter {
    /// How many relations there are, and of every rank how many enters its exit is too early for: all 0, or nothing.
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
        // Mostly that is all.
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

    /// Adds to every exit of a group, `sign` times, the enters of the group that it is too early for.
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
        // The enters of ranks so far, in a Fenwick tree over all of them by their times.
        self.tree.clear();
        self.tree.resize(self.enters.len() + 1, 0);
        let mut so_far = 0;
        for rank in group {
            if let Some(bound) = bound(*rank) {
                let mut at = self.enters.partition_point(|enter| *enter <= bound);
                let mut in_time = 0;
                while at > 0 {
                    in_time += self.tree[at];
                    at &= at - 1;
                }
                self.late[*rank] += sign * (so_far - in_time);
            }
            if let Some((_, enter)) = parties[*rank].enter {
                so_far += 1;
                let mut at = self.enters.partition_point(|other| *other < enter) + 1;
                while let Some(node) = self.tree.get_mut(at) {
                    *node += 1;
                    at += at & at.wrapping_neg();
                }
            }
        }
    }
}

/// How many enters come before how many exits.
fn total(parties: &[Party], in_ranks: bool) -> u64 {
    let enters = parties.iter().filter(|party| party.enter.is_some()).count() as u64;
    let mut so_far = 0;
    let mut total = 0;
    for party in parties {
        let own = u64::from(party.enter.is_some());
        if party.exit.is_some() {
            total += if in_ranks { so_far } else { enters - own };
        }
        so_far += own;
    }
    total
}

/// The enter of the lowest rank that the exit of `rank` is too early for, that exit, and by how much.
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
