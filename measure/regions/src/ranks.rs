//! Compact sets of ranks.

use core::fmt;

/// Set of ranks, as runs with constant strides: `0,2-4,13-22`, and `0-16380:4` for every fourth
/// rank.
///
/// Its size is bounded: at most [`MOST_RUNS`](Self::MOST_RUNS) runs are listed, and other ranks are
/// only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSet {
    runs: Vec<RankRun>,
    count: u32,
}

/// Ranks with a constant stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRun {
    /// The lowest rank.
    pub first: u32,
    /// Number of ranks, at least 1.
    pub count: u32,
    /// Distance between ranks, at least 1.
    pub stride: u32,
}

/// Minimum length of a run with a stride above 1; shorter ones are listed as single ranks, which is
/// easier to read.
const LEAST_STRIDED: usize = 4;

impl RankRun {
    const fn single(rank: u32) -> Self {
        Self {
            first: rank,
            count: 1,
            stride: 1,
        }
    }

    /// The highest rank; saturates.
    pub fn last(&self) -> u32 {
        self.first
            .saturating_add((self.count.saturating_sub(1)).saturating_mul(self.stride))
    }

    /// The ranks of the run.
    pub fn ranks(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |i| self.first.saturating_add(i.saturating_mul(self.stride)))
    }

    const fn is_strided(&self) -> bool {
        self.stride > 1
    }

    /// Joins two runs if `next` continues this one.
    fn joined(self, next: Self) -> Option<Self> {
        let strides_agree = self.stride == next.stride || (next.count == 1 && self.is_strided());
        let follows = self.last().checked_add(self.stride) == Some(next.first);
        (strides_agree && follows).then_some(Self {
            count: self.count + next.count,
            ..self
        })
    }
}

impl RankSet {
    /// Maximum number of runs in a set.
    pub const MOST_RUNS: usize = 1_000;

    /// Makes a set of a single rank.
    pub fn single(rank: u32) -> Self {
        Self {
            runs: vec![RankRun::single(rank)],
            count: 1,
        }
    }

    /// Number of ranks.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Returns true if there are no ranks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The lowest rank.
    pub fn first(&self) -> Option<u32> {
        self.runs.first().map(|run| run.first)
    }

    /// The runs, the lowest first.
    pub fn runs(&self) -> &[RankRun] {
        &self.runs
    }

    #[cfg(feature = "ranks")]
    pub(super) fn into_runs(self) -> Vec<RankRun> {
        self.runs
    }

    /// Number of ranks that are counted but not listed; they are higher than the listed ones.
    pub fn unlisted(&self) -> u32 {
        let listed: u32 = self
            .runs
            .iter()
            .fold(0, |sum, run| sum.saturating_add(run.count));
        self.count.saturating_sub(listed)
    }

    /// Adds a rank that is higher than all others.
    #[cfg(feature = "ranks")]
    pub(super) fn add(&mut self, rank: u32) {
        self.extend(1, &[RankRun::single(rank)]);
    }

    /// Adds ranks that are all higher.
    pub fn append(&mut self, higher: &Self) {
        self.extend(higher.count, &higher.runs);
    }

    /// Adds a number of higher ranks, of which these runs are listed.
    fn extend(&mut self, count: u32, runs: &[RankRun]) {
        let is_cut = self.unlisted() > 0;
        self.count = self.count.saturating_add(count);
        if !is_cut {
            runs.iter().all(|run| self.push(*run));
        }
    }

    /// Adds a run of higher ranks; returns false if the set is full.
    fn push(&mut self, run: RankRun) -> bool {
        let run = self.absorb_singles(run);
        if let Some(last) = self.runs.last_mut()
            && let Some(joined) = last.joined(run)
        {
            *last = joined;
            return true;
        }
        if let Some(strided) = self.made_strided(run) {
            self.runs.truncate(self.runs.len() + 1 - LEAST_STRIDED);
            self.runs.push(strided);
            return true;
        }
        let has_room = self.runs.len() < Self::MOST_RUNS;
        if has_room {
            self.runs.push(run);
        }
        has_room
    }

    /// Extends a strided run by the single ranks before it.
    fn absorb_singles(&mut self, mut run: RankRun) -> RankRun {
        while run.is_strided()
            && let Some(last) = self.runs.last()
            && last.count == 1
            && last.first.checked_add(run.stride) == Some(run.first)
        {
            run = RankRun {
                first: last.first,
                count: run.count + 1,
                ..run
            };
            self.runs.pop();
        }
        run
    }

    /// Makes a strided run of the last single ranks and `run`, if their distances are equal.
    fn made_strided(&self, run: RankRun) -> Option<RankRun> {
        let singles = self
            .runs
            .get(self.runs.len().checked_sub(LEAST_STRIDED - 1)?..)?;
        // A message from another rank may contain ranks that are not higher: they make no run.
        let stride = run
            .first
            .checked_sub(singles.last()?.first)
            .filter(|stride| *stride > 0)?;
        let all_single = run.count == 1 && singles.iter().all(|single| single.count == 1);
        let equal = singles
            .windows(2)
            .all(|pair| pair[1].first.checked_sub(pair[0].first) == Some(stride));
        let first = singles.first()?.first;
        (all_single && equal).then_some(RankRun {
            first,
            count: LEAST_STRIDED as u32,
            stride,
        })
    }

    /// The set with all ranks increased by `by`.
    pub(super) fn shifted(&self, by: u32) -> Self {
        let shift = |run: &RankRun| RankRun {
            first: run.first.saturating_add(by),
            ..*run
        };
        Self {
            runs: self.runs.iter().map(shift).collect(),
            count: self.count,
        }
    }

    /// Makes a set of stored runs; `None` if it is invalid: runs must be ascending, and all ranks
    /// below `ranks`.
    #[cfg(any(test, feature = "json", feature = "ranks"))]
    pub(super) fn from_parts(runs: Vec<RankRun>, count: u32, ranks: u32) -> Option<Self> {
        let mut listed: u32 = 0;
        let mut above: Option<u32> = None;
        for run in &runs {
            let span = (run.count.checked_sub(1)?).checked_mul(run.stride)?;
            let last = run.first.checked_add(span)?;
            if run.stride == 0 || last >= ranks || above.is_some_and(|above| run.first <= above) {
                return None;
            }
            above = Some(last);
            listed = listed.checked_add(run.count)?;
        }
        // A set that is not empty has a lowest rank.
        let sound = listed <= count
            && count <= ranks
            && (count == 0 || !runs.is_empty())
            && runs.len() <= Self::MOST_RUNS;
        sound.then_some(Self { runs, count })
    }

    /// The first `most` runs as text, and the number of ranks that are not in them.
    pub fn shown(&self, most: usize) -> (impl Iterator<Item = String>, u32) {
        let shown = &self.runs[..most.min(self.runs.len())];
        let listed = shown
            .iter()
            .fold(0_u32, |sum, run| sum.saturating_add(run.count));
        (
            shown.iter().map(ToString::to_string),
            self.count.saturating_sub(listed),
        )
    }
}

/// Written as `7`, `2-4`, `0-12:4`.
impl fmt::Display for RankRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self {
                first, count: 1, ..
            } => write!(f, "{first}"),
            Self {
                first, stride: 1, ..
            } => write!(f, "{first}-{}", self.last()),
            Self { first, stride, .. } => write!(f, "{first}-{}:{stride}", self.last()),
        }
    }
}

impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.runs.iter().enumerate() {
            write!(f, "{}{run}", if i == 0 { "" } else { "," })?;
        }
        match self.unlisted() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl FromIterator<u32> for RankSet {
    /// Makes a set of ascending ranks; others are skipped.
    fn from_iter<I: IntoIterator<Item = u32>>(ranks: I) -> Self {
        let mut set = Self::default();
        let mut last = None;
        for rank in ranks {
            if last.is_none_or(|last| rank > last) {
                set.append(&Self::single(rank));
                last = Some(rank);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(ranks: &[u32]) -> String {
        ranks.iter().copied().collect::<RankSet>().to_string()
    }

    #[test]
    fn lists_read_as_in_the_paper() {
        assert_eq!(shown(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), "1-11");
        assert_eq!(shown(&[0, 2, 3, 4, 13, 14, 25]), "0,2-4,13-14,25");
        assert_eq!(shown(&[1, 6, 11]), "1,6,11");
        assert_eq!(shown(&[2, 4]), "2,4");
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn equal_distances_are_named() {
        assert_eq!(shown(&[0, 4, 8, 12, 13]), "0-12:4,13");
        let every_fourth: RankSet = (0..16_384).step_by(4).collect();
        assert_eq!(every_fourth.to_string(), "0-16380:4");
    }

    #[test]
    fn irregular_ranks_are_counted() {
        let squares: RankSet = (0..2_000).map(|i| i * i).collect();
        assert_eq!((squares.len(), squares.unlisted()), (2_000, 999));
        let (runs, more) = squares.shown(3);
        assert_eq!(
            (runs.collect::<Vec<_>>().join(","), more),
            ("0-1,4,9".to_owned(), 1_996)
        );
        assert!(squares.to_string().ends_with(" and 999 more"), "{squares}");
    }

    #[test]
    fn invalid_sets_are_rejected() {
        let run = |first, count, stride| RankRun {
            first,
            count,
            stride,
        };
        let set = |runs: &[RankRun], count| RankSet::from_parts(runs.to_vec(), count, 100);
        assert!(
            set(&[run(0, 10, 1), run(20, 6, 16)], 16).is_none(),
            "up to rank 100"
        );
        assert!(set(&[run(0, 10, 1), run(20, 6, 15)], 16).is_some());
        assert!(set(&[run(0, 10, 1), run(9, 1, 1)], 11).is_none());
        assert!(set(&[run(0, 0, 1)], 0).is_none() && set(&[run(0, 1, 0)], 1).is_none());
        assert!(set(&[run(u32::MAX, u32::MAX, u32::MAX)], 1).is_none());
        assert!(
            set(&[], 1).is_none() && set(&[], 0).is_some() && set(&[run(0, 2, 1)], 101).is_none()
        );
    }

    /// Messages of other ranks may contain invalid sets.
    #[test]
    fn ranks_that_are_not_higher_do_no_harm() {
        let mut set: RankSet = [10, 20, 31].into_iter().collect();
        for rank in [5, 5, 5, 5, 4] {
            set.append(&RankSet::single(rank));
        }
        assert_eq!(set.to_string(), "10,20,31,5,5,5,5,4");
    }

    proptest! {
        /// Ranks are divided at arbitrary places.
        #[test]
        fn no_rank_is_lost_or_added(picked in prop::collection::vec(any::<bool>(), 0..200), cuts in prop::collection::vec(0_usize..200, 0..4)) {
            let ranks: Vec<u32> = (0..).zip(&picked).filter(|(_, picked)| **picked).map(|(rank, _)| rank).collect();
            let mut set = RankSet::default();
            let mut cuts = cuts;
            cuts.extend([0, 200]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                let part = ranks.iter().copied().filter(|rank| (pair[0]..pair[1]).contains(&(*rank as usize)));
                set.append(&part.collect());
            }
            let found: Vec<u32> = set.runs().iter().flat_map(|run| run.ranks()).collect();
            prop_assert_eq!(set.len() as usize, ranks.len());
            prop_assert_eq!(found, ranks);
            prop_assert!(RankSet::from_parts(set.runs().to_vec(), set.len(), 200) == Some(set));
        }
    }
}
