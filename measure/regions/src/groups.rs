//! Ranks whose histograms look alike.

use core::cmp::Reverse;

use downbeat_clock_core::DecimalBin;

use super::ranks::RankSet;

/// Ranks that have most of their events in the same bin, and how many events they have in each.
///
/// There are at most as many groups as bins, however many ranks there are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct HistogramGroup {
    /// The bin that has the most events on each of these ranks; of equals, the shortest, as in figure 9.
    #[cfg_attr(feature = "json", serde(with = "super::saved::bin"))]
    pub fullest: DecimalBin,
    /// Which ranks.
    pub ranks: RankSet,
    /// All bins that are not empty on all of these ranks, the shortest first.
    pub bins: Vec<BinCounts>,
}

/// How many events ranks have in one bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct BinCounts {
    /// Which bin.
    #[cfg_attr(feature = "json", serde(with = "super::saved::bin"))]
    pub bin: DecimalBin,
    /// The most.
    pub most: RankCount,
    /// The fewest, perhaps 0.
    pub least: RankCount,
    /// Of all ranks of the group.
    pub sum: u64,
}

/// How many events a rank has; of several ranks with as many, the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RankCount {
    /// How many.
    pub count: u64,
    /// Which rank.
    pub rank: u32,
}

impl RankCount {
    /// The larger; `self` is of lower ranks.
    pub(super) fn most(self, higher: Self) -> Self {
        if higher.count > self.count {
            higher
        } else {
            self
        }
    }

    /// The smaller; `self` is of lower ranks.
    pub(super) fn least(self, higher: Self) -> Self {
        if higher.count < self.count {
            higher
        } else {
            self
        }
    }
}

impl BinCounts {
    const fn single_rank(bin: DecimalBin, count: u64, rank: u32) -> Self {
        let of = RankCount { count, rank };
        Self {
            bin,
            most: of,
            least: of,
            sum: count,
        }
    }

    fn append(self, higher: Self) -> Self {
        let (most, least) = (self.most.most(higher.most), self.least.least(higher.least));
        Self {
            bin: self.bin,
            most,
            least,
            sum: self.sum.saturating_add(higher.sum),
        }
    }
}

impl HistogramGroup {
    /// A single rank, with the bins that are not empty; `None` if all are.
    pub(super) fn single_rank(rank: u32, bins: &[(DecimalBin, u64)]) -> Option<Self> {
        let (fullest, _) = bins
            .iter()
            .copied()
            .max_by_key(|(bin, count)| (*count, Reverse(*bin)))?;
        let bins = bins
            .iter()
            .map(|(bin, count)| BinCounts::single_rank(*bin, *count, rank))
            .collect();
        Some(Self {
            fullest,
            ranks: RankSet::single(rank),
            bins,
        })
    }

    /// Adds higher ranks.
    fn append(&mut self, higher: &Self) {
        let (Some(mine), Some(theirs)) = (self.ranks.first(), higher.ranks.first()) else {
            return;
        };
        // Who has no event in a bin has 0 there. Mostly the bins are the same.
        let mut of_higher = higher.bins.iter().copied().peekable();
        let mut missing = vec![];
        for counts in &mut self.bins {
            missing.extend(core::iter::from_fn(|| {
                of_higher.next_if(|higher| higher.bin < counts.bin)
            }));
            let same = of_higher.next_if(|higher| higher.bin == counts.bin);
            *counts = counts.append(same.unwrap_or(BinCounts::single_rank(counts.bin, 0, theirs)));
        }
        missing.extend(of_higher);
        if !missing.is_empty() {
            self.bins.extend(
                missing
                    .into_iter()
                    .map(|higher| BinCounts::single_rank(higher.bin, 0, mine).append(higher)),
            );
            self.bins.sort_by_key(|counts| counts.bin);
        }
        self.ranks.append(&higher.ranks);
    }

    pub(super) fn shift(&mut self, by: u32) {
        self.ranks = self.ranks.shifted(by);
        for counts in &mut self.bins {
            counts.most.rank = counts.most.rank.saturating_add(by);
            counts.least.rank = counts.least.rank.saturating_add(by);
        }
    }
}

/// Adds the groups of higher ranks. The group of the longest bin stays first.
pub(super) fn append(groups: &mut Vec<HistogramGroup>, higher: &[HistogramGroup]) {
    for group in higher {
        match groups.binary_search_by_key(&Reverse(group.fullest), |known| Reverse(known.fullest)) {
            Ok(place) => groups[place].append(group),
            Err(place) => groups.insert(place, group.clone()),
        }
    }
}
