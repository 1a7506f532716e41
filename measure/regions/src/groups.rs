//! Groups of ranks with similar histograms.

use core::cmp::Reverse;

use downbeat_clock_core::histogram::DecimalBin;

use super::ranks::RankSet;

/// Ranks with most of their events in the same bin, and their numbers of events in each bin.
///
/// There are at most as many groups as bins, for any number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct HistogramGroup {
    /// Bin with the most events on each of these ranks; the shortest of equal ones, as in figure 9
    /// of the paper.
    #[cfg_attr(feature = "json", serde(with = "super::saved::bin"))]
    pub fullest: DecimalBin,
    /// The ranks.
    pub ranks: RankSet,
    /// Bins that are not empty on some of these ranks, the shortest first.
    pub bins: Vec<BinCounts>,
}

/// Numbers of events of ranks in one bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct BinCounts {
    /// The bin.
    #[cfg_attr(feature = "json", serde(with = "super::saved::bin"))]
    pub bin: DecimalBin,
    /// Largest number of events.
    pub most: RankCount,
    /// Smallest number of events, perhaps 0.
    pub least: RankCount,
    /// Sum over all ranks of the group.
    pub sum: u64,
}

/// Number of events on a rank; of equal numbers, that of the lowest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RankCount {
    /// Number of events.
    pub count: u64,
    /// The rank.
    pub rank: u32,
}

/// Figure of a rank that may be the greatest or the least of all ranks; where several ranks have it, that of the lowest counts.
pub(super) trait RankFigure: Copy {
    fn size(&self) -> u64;

    /// Takes the figure of a higher rank if it is greater.
    fn keep_greater(&mut self, higher: Self) {
        if higher.size() > self.size() {
            *self = higher;
        }
    }

    /// Takes the figure of a higher rank if it is less.
    fn keep_less(&mut self, higher: Self) {
        if higher.size() < self.size() {
            *self = higher;
        }
    }
}

impl RankFigure for RankCount {
    fn size(&self) -> u64 {
        self.count
    }
}

impl BinCounts {
    const fn single_rank(bin: DecimalBin, count: u64, rank: u32) -> Self {
        let rank_count = RankCount { count, rank };
        Self {
            bin,
            most: rank_count,
            least: rank_count,
            sum: count,
        }
    }

    fn append(mut self, higher: Self) -> Self {
        self.most.keep_greater(higher.most);
        self.least.keep_less(higher.least);
        self.sum = self.sum.saturating_add(higher.sum);
        self
    }
}

impl HistogramGroup {
    /// Makes the group of a single rank from its bins that are not empty; `None` if there are none.
    pub(super) fn single_rank(rank: u32, bins: &[(DecimalBin, u64)]) -> Option<Self> {
        let fullest = fullest(bins)?;
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

    /// Merges the group of higher ranks.
    fn append(&mut self, higher: &Self) {
        if let Some(theirs) = higher.ranks.first() {
            self.append_bins(theirs, higher.bins.iter().copied());
            self.ranks.append(&higher.ranks);
        }
    }

    /// Merges the bins of higher ranks, of which `theirs` is the first.
    fn append_bins(&mut self, theirs: u32, higher: impl Iterator<Item = BinCounts>) {
        let Some(mine) = self.ranks.first() else {
            return;
        };
        // A rank without the bin has 0 events in it. Usually both have the same bins.
        let mut higher_bins = higher.peekable();
        let mut missing = vec![];
        for counts in &mut self.bins {
            missing.extend(core::iter::from_fn(|| {
                higher_bins.next_if(|higher| higher.bin < counts.bin)
            }));
            let same = higher_bins.next_if(|higher| higher.bin == counts.bin);
            *counts = counts.append(same.unwrap_or(BinCounts::single_rank(counts.bin, 0, theirs)));
        }
        missing.extend(higher_bins);
        if !missing.is_empty() {
            self.bins.extend(
                missing
                    .into_iter()
                    .map(|higher| BinCounts::single_rank(higher.bin, 0, mine).append(higher)),
            );
            self.bins.sort_by_key(|counts| counts.bin);
        }
    }

    pub(super) fn shift(&mut self, by: u32) {
        self.ranks = self.ranks.shifted(by);
        for counts in &mut self.bins {
            counts.most.rank = counts.most.rank.saturating_add(by);
            counts.least.rank = counts.least.rank.saturating_add(by);
        }
    }
}

/// Merges the bins of one higher rank that are not empty. The group with the longest bin stays first.
#[cfg(feature = "ranks")]
pub(super) fn add(groups: &mut Vec<HistogramGroup>, rank: u32, bins: &[(DecimalBin, u64)]) {
    let Some(fullest) = fullest(bins) else {
        return;
    };
    match place_of(groups, fullest) {
        Ok(place) => {
            let group = &mut groups[place];
            let counts =
                |(bin, count): &(DecimalBin, u64)| BinCounts::single_rank(*bin, *count, rank);
            group.append_bins(rank, bins.iter().map(counts));
            group.ranks.add(rank);
        }
        Err(place) => {
            if let Some(group) = HistogramGroup::single_rank(rank, bins) {
                groups.insert(place, group);
            }
        }
    }
}

/// Returns the bin with the most events, the shortest of equal ones.
fn fullest(bins: &[(DecimalBin, u64)]) -> Option<DecimalBin> {
    let fullest = bins
        .iter()
        .max_by_key(|(bin, count)| (*count, Reverse(*bin)));
    fullest.map(|(bin, _)| *bin)
}

fn place_of(groups: &[HistogramGroup], fullest: DecimalBin) -> Result<usize, usize> {
    groups.binary_search_by_key(&Reverse(fullest), |known| Reverse(known.fullest))
}

/// Merges the groups of higher ranks. The group with the longest bin stays first.
pub(super) fn append(groups: &mut Vec<HistogramGroup>, higher: &[HistogramGroup]) {
    for group in higher {
        match place_of(groups, group.fullest) {
            Ok(place) => groups[place].append(group),
            Err(place) => groups.insert(place, group.clone()),
        }
    }
}
