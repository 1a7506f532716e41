//! Call paths of a region, merged over ranks.

use core::cmp::Ordering;

use super::profile::PathProfile;

/// Events of a region inside certain others, on all ranks; lengths are in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct PathReport {
    /// Names of the regions around it, the outermost first.
    pub callers: Vec<String>,
    /// Number of ranks with such events.
    pub ranks: u32,
    /// Number of events on all ranks.
    pub events: u64,
    /// Greatest total length on a rank.
    pub greatest_total: u64,
    /// Total length on all ranks.
    pub total: u128,
    /// Greatest own time of a rank: that which is not in regions inside it.
    pub greatest_own: u64,
    /// Rank with the greatest own time; of equal ones, the lowest.
    pub own_rank: u32,
    /// Own time of all ranks.
    pub own: u128,
}

impl PathReport {
    pub(super) fn new(rank: u32, path: &PathProfile) -> Self {
        Self {
            callers: path.callers.clone(),
            ranks: 1,
            events: path.events,
            greatest_total: path.total,
            total: path.total.into(),
            greatest_own: path.own,
            own_rank: rank,
            own: path.own.into(),
        }
    }

    /// Average own time of the ranks with such events, in whole ticks.
    pub fn average_own(&self) -> u128 {
        self.own.checked_div(self.ranks.into()).unwrap_or(0)
    }

    /// Adds the events of higher ranks.
    fn append(&mut self, higher: &Self) {
        self.ranks = self.ranks.saturating_add(higher.ranks);
        self.events = self.events.saturating_add(higher.events);
        self.greatest_total = self.greatest_total.max(higher.greatest_total);
        self.total = self.total.saturating_add(higher.total);
        self.own = self.own.saturating_add(higher.own);
        if higher.greatest_own > self.greatest_own {
            self.greatest_own = higher.greatest_own;
            self.own_rank = higher.own_rank;
        }
    }
}

/// Merges the paths of higher ranks; both are in the order of their names.
pub(super) fn append(paths: &mut Vec<PathReport>, higher: &[PathReport]) {
    let known = paths.len();
    let mut place = 0;
    for added in higher {
        while place < known && paths[place].callers < added.callers {
            place += 1;
        }
        match paths[..known].get_mut(place) {
            Some(path) if path.callers.cmp(&added.callers) == Ordering::Equal => {
                path.append(added);
            }
            _ => paths.push(added.clone()),
        }
    }
    if paths.len() > known {
        paths.sort_by(|a, b| a.callers.cmp(&b.callers));
    }
}
