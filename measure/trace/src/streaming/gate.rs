//! Order of the members of a collective operation, and the earliest time at which each can leave,
//! in either direction of time.

use super::super::extremes::{Extremes, NEVER};
use super::super::latencies::{Latencies, Site};

/// Times at one end of a collective operation, by the ranks of its members, for the members at the
/// other end.
#[derive(Debug)]
pub(super) struct StreamedGate {
    /// Times and locations of the ranks that have come.
    there: Vec<(i64, u32)>,
    /// Extremes of the processed ranks.
    seen: Extremes,
    /// Extremes before each of them.
    before: Vec<Extremes>,
    /// First rank that is not processed.
    next: usize,
}

impl StreamedGate {
    pub(super) fn new(members: u32) -> Self {
        Self {
            there: vec![(NEVER, 0); members as usize],
            seen: Extremes::NONE,
            before: vec![],
            next: 0,
        }
    }

    /// Adds the member of this rank.
    pub(super) fn add(&mut self, rank: u32, time: i64, location: u32) {
        self.there[rank as usize] = (time, location);
    }

    /// Adds the member of this rank, for which others with its own clock may not have waited.
    pub(super) fn add_late(&mut self, rank: u32, time: i64, location: u32) {
        self.add(rank, time, location);
        if (rank as usize) < self.next {
            self.next = 0;
            self.seen = Extremes::NONE;
            self.before.clear();
        }
    }

    /// Returns the arrival time if all ranks that count have come.
    pub(super) fn reach_of_those_there(
        &mut self,
        before: Option<u32>,
        to: (Site, &Latencies),
        site: impl Fn(u32) -> Site,
    ) -> i64 {
        self.reach(before, to, None::<&fn(u32) -> bool>, site)
            .unwrap_or(NEVER)
    }

    /// Returns when the data of others reach a member: of all others, or only of lower ranks;
    /// `None` if a rank that counts has not come. Without given ranks that count, those that have
    /// come count.
    pub(super) fn reach(
        &mut self,
        before: Option<u32>,
        (receiver, latencies): (Site, &Latencies),
        counts: Option<&impl Fn(u32) -> bool>,
        site: impl Fn(u32) -> Site,
    ) -> Option<i64> {
        let end = before.map_or(self.there.len(), |rank| rank as usize);
        while self.next < end {
            let (time, location) = self.there[self.next];
            let is_seen = counts.map_or(time != NEVER, |counts| counts(self.next as u32));
            if is_seen && time == NEVER {
                return None;
            }
            if before.is_some() {
                self.before.push(self.seen);
            }
            if is_seen {
                self.seen.add(time, site(location));
            }
            self.next += 1;
        }
        // If no further rank comes before the next one, all processed ranks are before it.
        let seen = before
            .and_then(|rank| self.before.get(rank as usize))
            .unwrap_or(&self.seen);
        Some(seen.reach(receiver, latencies))
    }

    /// Returns the same for a member with members of its own clock that have not come, for which it
    /// does not wait.
    pub(super) fn reach_of_others(
        &self,
        before: Option<u32>,
        (receiver, latencies): (Site, &Latencies),
        (counts, is_own): (&impl Fn(u32) -> bool, &impl Fn(u32) -> bool),
        site: impl Fn(u32) -> Site,
    ) -> Option<i64> {
        let end = before.map_or(self.there.len(), |rank| rank as usize);
        let mut seen = Extremes::NONE;
        for (rank, (time, location)) in (0..).zip(&self.there[..end]) {
            if !counts(rank) || is_own(rank) {
                continue;
            }
            if *time == NEVER {
                return None;
            }
            seen.add(*time, site(*location));
        }
        Some(seen.reach(receiver, latencies))
    }
}
