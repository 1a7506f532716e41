//! Who of a collective operation comes when, and when another member can: in either direction of time.

use super::super::extremes::{Extremes, NEVER};
use super::super::latencies::{Latencies, Site};

/// Times of one end of a collective operation, by the ranks of its members, for those who need them at the other end.
#[derive(Debug)]
pub(super) struct Gate {
    /// The times, and the locations.
    there: Vec<(i64, u32)>,
    /// What counts of those ranks that were looked at.
    seen: Extremes,
    /// As it was before each of them.
    before: Vec<Extremes>,
    /// Ranks from here on were not looked at.
    next: usize,
}

impl Gate {
    pub(super) fn new(members: u32) -> Self {
        Self {
            there: vec![(NEVER, 0); members as usize],
            seen: Extremes::NONE,
            before: vec![],
            next: 0,
        }
    }

    /// The member of this rank comes.
    pub(super) fn add(&mut self, rank: u32, time: i64, location: u32) {
        self.there[rank as usize] = (time, location);
    }

    /// The same, where all are there that count.
    pub(super) fn reach_of_those_there(
        &mut self,
        before: Option<u32>,
        to: (Site, &Latencies),
        site: impl Fn(u32) -> Site,
    ) -> i64 {
        self.reach(before, to, None::<&fn(u32) -> bool>, site)
            .unwrap_or(NEVER)
    }

    /// When what others gave reaches a member: all of them, or only those before a rank; `None` if one is not there that
    /// counts. Who counts is known, or else it is those who are there.
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
        // With nobody before the next one, what was seen is what is before it.
        let seen = before
            .and_then(|rank| self.before.get(rank as usize))
            .unwrap_or(&self.seen);
        Some(seen.reach(receiver, latencies))
    }
}
