//! Which ranks, in few words.

use core::fmt;

/// A set of ranks, as runs of equal distance: `0,2-4,13-22`, and `0-16380:4` for every fourth.
///
/// It is bounded: of a set that makes no runs, [`MOST_RUNS`](Self::MOST_RUNS) are listed, and the other ranks are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSet {
    runs: Vec<RankRun>,
    count: u32,
}

/// Ranks of equal distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRun {
    /// The lowest.
    pub first: u32,
    /// How many, at least 1.
    pub count: u32,
    /// How far each is from the last one, at least 1.
    pub stride: u32,
}

/// So many ranks of a distance beyond 1 make a run; fewer are listed one by one, as they read better.
const LEAST_STRIDED: usize = 4;

impl RankRun {
    /// The highest; saturates.
    pub fn last(&self) -> u32 {
        self.first
            .saturating_add((self.count.saturating_sub(1)).saturating_mul(self.stride))
    }

    /// The ranks.
    pub fn ranks(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |i| self.first.saturating_add(i.saturating_mul(self.stride)))
    }

    const fn is_strided(&self) -> bool {
        self.stride > 1
    }

    /// If `next` goes on where this one ends, the two as one.
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
    /// So many runs are kept of a set.
    pub const MOST_RUNS: usize = 1_000;

    /// A single rank.
    pub fn single(rank: u32) -> Self {
        Self {
            runs: vec![RankRun {
                first: rank,
                count: 1,
                stride: 1,
            }],
            count: 1,
        }
    }

    /// How many ranks.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is none.
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

    /// How many ranks are counted, but not listed; they are higher than those that are.
    pub fn unlisted(&self) -> u32 {
        let listed: u32 = self
            .runs
            .iter()
            .fold(0, |sum, run| sum.saturating_add(run.count));
        self.count.saturating_sub(listed)
    }

    /// Adds ranks that are all higher.
    pub fn append(&mut self, higher: &Self) {
        let is_cut = self.unlisted() > 0;
        self.count = self.count.saturating_add(higher.count);
        if !is_cut {
            higher.runs.iter().all(|run| self.push(*run));
        }
    }

    /// Adds a run of higher ranks, if there is room.
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

    /// A strided run takes over the single ranks that precede it in its stride.
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

    /// The last single ranks and this one, if they are at equal distances.
    fn made_strided(&self, run: RankRun) -> Option<RankRun> {
        let singles = self
            .runs
            .get(self.runs.len().checked_sub(LEAST_STRIDED - 1)?..)?;
        // Another rank may have sent ranks that are not higher: they make no run.
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

    /// The same ranks of a program whose ranks come after so many of another.
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

    /// A set as it was written; `None` if it is none: runs must be in order, and no more than `ranks` in all.
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

    /// The first `most` runs, each as it is written, and how many ranks are not in them.
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

/// `7`, `2-4`, `0-12:4`.
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
    /// From ranks in ascending order; others are left out.
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
    fn what_makes_no_runs_is_counted() {
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
    fn what_is_no_set_is_not_taken() {
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

    /// What a rank sends is not under the control of those who add it.
    #[test]
    fn ranks_that_are_not_higher_do_no_harm() {
        let mut set: RankSet = [10, 20, 31].into_iter().collect();
        for rank in [5, 5, 5, 5, 4] {
            set.append(&RankSet::single(rank));
        }
        assert_eq!(set.to_string(), "10,20,31,5,5,5,5,4");
    }

    proptest! {
        /// Whoever divides the ranks, and wherever.
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
