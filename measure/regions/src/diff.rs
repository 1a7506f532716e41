//! Differences between two runs of a program: which regions changed, on which ranks, and changes of
//! histograms.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;

use super::error::RegionError;
use super::places::RankPlace;
use super::ranks::RankSet;
use super::report::{EventReport, ProfileReport, RegionReport};

/// Differences between two reports.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportDiff<'a> {
    /// Number of ranks of each report.
    pub ranks: [u32; 2],
    /// Length of a tick, the same in both.
    pub tick: Duration,
    /// All regions of both, sorted by the change of the greatest total, then by the change of the
    /// average total.
    pub regions: Vec<RegionDiff<'a>>,
}

/// A region in two reports. Without events in one of them, its time there counts as zero.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionDiff<'a> {
    /// Name of the region.
    pub name: &'a str,
    /// The region in each report that has it.
    pub found: [Option<&'a RegionReport>; 2],
    /// Change of the histogram over all ranks; only if both reports have events.
    pub histogram: Option<HistogramShift>,
    /// Ranks that moved from one group to another, largest sets first; only if both reports have
    /// events.
    pub moves: Vec<RankMove>,
    /// Number of ranks whose groups are unknown, as lists of ranks are bounded.
    pub undetermined: u32,
}

/// Change of the histogram of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramShift {
    /// Share of the events that would have to change bins to make both histograms equal: half the
    /// sum of the differences of all shares. It is 0 if all bins have the same shares, and 1 if no
    /// bin has events in both.
    pub share: f64,
    /// Bin with the most events in each; the shortest of equal ones.
    pub fullest: [DecimalBin; 2],
}

/// Ranks that moved from one group to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankMove {
    /// Fullest bin of their group in the first report; `None` if they have no events there.
    pub from: Option<DecimalBin>,
    /// Fullest bin of their group in the second report; `None` if they have no events there.
    pub to: Option<DecimalBin>,
    /// The ranks.
    pub ranks: RankSet,
}

/// With more ranks than this, moves are not computed: a report of a few bytes may claim to have
/// 2^32 ranks.
const MOST_RANKS: u32 = 1 << 24;

impl<'a> ReportDiff<'a> {
    /// Compares two reports. Ranks that only one of them has do not move.
    ///
    /// # Errors
    /// If their ticks differ.
    pub fn new(first: &'a ProfileReport, second: &'a ProfileReport) -> Result<Self, RegionError> {
        if first.tick != second.tick {
            return Err(RegionError::ReportTicksDiffer([first.tick, second.tick]));
        }
        let mut names: BTreeMap<&str, [Option<&RegionReport>; 2]> = BTreeMap::new();
        for (which, report) in [first, second].into_iter().enumerate() {
            for region in &report.regions {
                names.entry(&region.name).or_default()[which] = Some(region);
            }
        }
        let ranks = [first.ranks, second.ranks];
        let both = ranks[0].min(ranks[1]);
        let mut regions: Vec<_> = names
            .into_iter()
            .map(|(name, found)| RegionDiff::new(name, found, both))
            .collect();
        // The sort is stable: regions with equal changes stay sorted by name.
        regions.sort_by_key(|region| {
            let change = [
                region.greatest_total_change(),
                region.average_total_change(),
            ];
            Reverse(change.map(i128::unsigned_abs))
        });
        Ok(Self {
            ranks,
            tick: first.tick,
            regions,
        })
    }
}

impl<'a> RegionDiff<'a> {
    fn new(name: &'a str, found: [Option<&'a RegionReport>; 2], ranks: u32) -> Self {
        let mut diff = Self {
            name,
            found,
            histogram: None,
            moves: vec![],
            undetermined: 0,
        };
        if let [Some(first), Some(second)] = diff.events() {
            diff.histogram = HistogramShift::new(first, second);
            (diff.moves, diff.undetermined) = if ranks <= MOST_RANKS {
                moves(first, second, ranks)
            } else {
                (vec![], ranks)
            };
        }
        diff
    }

    /// Events of the region in each report.
    pub fn events(&self) -> [Option<&'a EventReport>; 2] {
        self.found
            .map(|found| found.and_then(|region| region.events.as_ref()))
    }

    /// Growth of the greatest total of a rank, in ticks.
    pub fn greatest_total_change(&self) -> i128 {
        self.change(|events| events.greatest_total.total.into())
    }

    /// Growth of the average total of the ranks with events, in whole ticks.
    pub fn average_total_change(&self) -> i128 {
        self.change(EventReport::average_total)
    }

    fn change(&self, value: impl Fn(&EventReport) -> u128) -> i128 {
        let [first, second] = self.events().map(|events| events.map_or(0, &value));
        i128::try_from(second)
            .unwrap_or(i128::MAX)
            .saturating_sub_unsigned(first)
    }

    /// Returns true if the region is the same in both reports.
    pub fn is_unchanged(&self) -> bool {
        self.found[0] == self.found[1]
    }
}

impl HistogramShift {
    /// Returns `None` if one of them has no events.
    fn new(first: &EventReport, second: &EventReport) -> Option<Self> {
        let [one, other] = [first, second].map(merged_bins);
        let shares = |bins: &BTreeMap<DecimalBin, u64>| {
            let all: f64 = bins.values().map(|count| *count as f64).sum();
            move |count: Option<&u64>| count.map_or(0.0, |count| *count as f64 / all)
        };
        let [one_share, other_share] = [shares(&one), shares(&other)];
        let bins = one
            .keys()
            .chain(other.keys().filter(|bin| !one.contains_key(bin)));
        let apart: f64 = bins
            .map(|bin| (one_share(one.get(bin)) - other_share(other.get(bin))).abs())
            .sum();
        // Rounding must not exceed the maximum.
        Some(Self {
            share: (0.5 * apart).min(1.0),
            fullest: [fullest(&one)?, fullest(&other)?],
        })
    }

    /// Number of bins that the fullest bin moved up, or down if negative; every power of ten has
    /// nine bins.
    pub fn bins(&self) -> i32 {
        let [first, second] = self
            .fullest
            .map(|bin| i32::try_from(bin.index()).unwrap_or(i32::MAX));
        second.saturating_sub(first)
    }
}

/// Events of all ranks in each bin that is not empty.
fn merged_bins(events: &EventReport) -> BTreeMap<DecimalBin, u64> {
    let mut bins: BTreeMap<DecimalBin, u64> = BTreeMap::new();
    for counts in events
        .groups
        .iter()
        .flat_map(|group| &group.bins)
        .filter(|counts| counts.sum > 0)
    {
        let sum = bins.entry(counts.bin).or_default();
        *sum = sum.saturating_add(counts.sum);
    }
    bins
}

fn fullest(bins: &BTreeMap<DecimalBin, u64>) -> Option<DecimalBin> {
    bins.iter()
        .max_by_key(|(bin, count)| (*count, Reverse(*bin)))
        .map(|(bin, _)| *bin)
}

/// Ranks that moved, and the number of ranks whose groups are unknown.
fn moves(first: &EventReport, second: &EventReport, ranks: u32) -> (Vec<RankMove>, u32) {
    let mut moved: BTreeMap<[Option<DecimalBin>; 2], RankSet> = BTreeMap::new();
    let mut undetermined = 0;
    for ((rank, from), to) in (0..).zip(first.places(ranks)).zip(second.places(ranks)) {
        match (known(from), known(to)) {
            (Some(from), Some(to)) if from != to => moved
                .entry([from, to])
                .or_default()
                .append(&RankSet::single(rank)),
            (Some(_), Some(_)) => {}
            _ => undetermined += 1,
        }
    }
    let mut moves: Vec<_> = moved
        .into_iter()
        .map(|([from, to], ranks)| RankMove { from, to, ranks })
        .collect();
    moves.sort_by_key(|moved| Reverse(moved.ranks.len()));
    (moves, undetermined)
}

/// Group of a rank, `Some(None)` if it has no events; `None` if unknown.
fn known(place: RankPlace) -> Option<Option<DecimalBin>> {
    match place {
        RankPlace::Group(fullest) => Some(Some(fullest)),
        RankPlace::Without => Some(None),
        RankPlace::Unlisted => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_reports;

    /// Eight ranks, the last four with little work; then six that share the work.
    fn before() -> ProfileReport {
        let (much, little): (&[u64], &[u64]) = (&[6_100, 4_500, 4_700, 4_600], &[6_000, 7, 7, 6]);
        let solve = [much, much, much, much, little, little, little, little].map(Some);
        let (some, none) = (Some(&[50_u64, 60][..]), None);
        let output = [some, none, some, none, some, none, some, none];
        test_reports::report(
            1,
            &[
                ("solve", &solve),
                ("output", &output),
                ("setup", &[Some(&[900])]),
                ("same", &[Some(&[5, 6])]),
            ],
        )
    }

    fn after() -> ProfileReport {
        let (one, other): (&[u64], &[u64]) =
            (&[6_100, 3_100, 3_200, 3_300], &[6_000, 3_900, 7, 3_000]);
        let solve = [one, one, one, other, other, one].map(Some);
        let output = [
            None,
            Some(&[50_u64, 60][..]),
            Some(&[90]),
            None,
            Some(&[50, 60]),
            None,
        ];
        test_reports::report(
            1,
            &[
                ("solve", &solve),
                ("output", &output),
                ("check", &[Some(&[400, 2_000])]),
                ("same", &[Some(&[5, 6])]),
            ],
        )
    }

    fn moves_of(region: &RegionDiff<'_>) -> Vec<(Option<u64>, Option<u64>, String)> {
        let low = |bin: Option<DecimalBin>| bin.map(DecimalBin::low);
        region
            .moves
            .iter()
            .map(|moved| (low(moved.from), low(moved.to), moved.ranks.to_string()))
            .collect()
    }

    #[test]
    fn regions_are_sorted_by_the_change_of_their_total() {
        let (before, after) = (before(), after());
        let diff = ReportDiff::new(&before, &after).unwrap();
        assert_eq!(diff.ranks, [8, 6]);
        let changes: Vec<_> = diff
            .regions
            .iter()
            .map(|region| {
                (
                    region.name,
                    region.greatest_total_change(),
                    region.average_total_change(),
                )
            })
            .collect();
        // solve, greatest: 6100 + 4500 + 4700 + 4600 = 19900 and 6100 + 3100 + 3200 + 3300 = 15700. On average it was
        // (4 * 19900 + 4 * 6020) / 8 = 12960, and is (4 * 15700 + 2 * 12907) / 6 = 14769 and a third.
        assert_eq!(
            changes,
            [
                ("solve", -4_200, 1_809),
                ("check", 2_400, 2_400),
                ("setup", -900, -900),
                // 110 on each rank; then (110 + 90 + 110) / 3 = 103 and a third.
                ("output", 0, -7),
                ("same", 0, 0)
            ]
        );
        let there: Vec<_> = diff
            .regions
            .iter()
            .map(|region| region.found.map(|found| found.is_some()))
            .collect();
        assert_eq!(
            there,
            [
                [true; 2],
                [false, true],
                [true, false],
                [true; 2],
                [true; 2]
            ]
        );
        let unchanged = |region: &&RegionDiff<'_>| region.is_unchanged();
        assert_eq!(
            diff.regions
                .iter()
                .filter(unchanged)
                .map(|region| region.name)
                .collect::<Vec<_>>(),
            ["same"]
        );
    }

    #[test]
    fn histograms_move_by_the_events_that_change_their_bin() {
        let (before, after) = (before(), after());
        let diff = ReportDiff::new(&before, &after).unwrap();
        let histogram = |name| {
            diff.regions
                .iter()
                .find(|region| region.name == name)
                .and_then(|found| found.histogram)
        };
        // Before, of 32 events: 8 of 6000, 12 of 4000, 8 of 7, 4 of 6; after, of 24: 6 of 6000, 16 of 3000, 2 of 7.
        let expected = 0.5
            * ((8.0 / 32.0 - 6.0 / 24.0_f64).abs()
                + 12.0 / 32.0
                + 16.0 / 24.0
                + (8.0 / 32.0 - 2.0 / 24.0)
                + 4.0 / 32.0);
        let solve = histogram("solve").unwrap();
        assert!(
            (solve.share - expected).abs() < 1e-12 && (expected - 2.0 / 3.0).abs() < 1e-12,
            "{solve:?}"
        );
        assert_eq!(
            (solve.fullest.map(DecimalBin::low), solve.bins()),
            ([4_000, 3_000], -1)
        );
        // 4 of 50 and 4 of 60; then 2 of each, and one of 90: a fifth has moved.
        let output = histogram("output").unwrap();
        assert!(
            (output.share - 0.2).abs() < 1e-12 && output.bins() == 0,
            "{output:?}"
        );
        assert_eq!(histogram("same").map(|same| same.share), Some(0.0));
        assert_eq!((histogram("setup"), histogram("check")), (None, None));

        let (short, long) = (
            test_reports::report(1, &[("r", &[Some(&[7])])]),
            test_reports::report(1, &[("r", &[Some(&[7_100])])]),
        );
        let diff = ReportDiff::new(&short, &long).unwrap();
        // From 7 over 8, 9, then 10, ..., 90, then 100, ..., 900, then 1000 to 7000.
        let found = diff.regions[0].histogram.unwrap();
        assert_eq!((found.share, found.bins()), (1.0, 27));
    }

    #[test]
    fn moved_ranks_are_listed() {
        let (before, after) = (before(), after());
        let diff = ReportDiff::new(&before, &after).unwrap();
        let found = |name| {
            diff.regions
                .iter()
                .find(|region| region.name == name)
                .unwrap()
        };
        let expected = [
            (Some(4_000), Some(3_000), "0-3".to_owned()),
            (Some(7), Some(3_000), "4-5".to_owned()),
        ];
        assert_eq!(moves_of(found("solve")), expected);
        let expected = [
            (None, Some(50), "1".to_owned()),
            (Some(50), None, "0".to_owned()),
            (Some(50), Some(90), "2".to_owned()),
        ];
        assert_eq!(moves_of(found("output")), expected);
        assert!(found("same").moves.is_empty() && found("setup").moves.is_empty());
        assert!(diff.regions.iter().all(|region| region.undetermined == 0));
    }

    #[test]
    fn the_same_report_has_no_difference() {
        let report = before();
        let diff = ReportDiff::new(&report, &report).unwrap();
        assert!(
            diff.regions
                .iter()
                .all(|region| region.is_unchanged() && region.moves.is_empty())
        );
        assert!(
            diff.regions
                .iter()
                .all(|region| region.histogram.is_some_and(|found| found.share == 0.0))
        );
    }

    #[test]
    fn ticks_must_agree_and_bounded_lists_are_counted() {
        let (fine, coarse) = (
            test_reports::report(1, &[]),
            test_reports::report(1_000, &[]),
        );
        let refused = ReportDiff::new(&fine, &coarse).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a tick is 1 ns in one report, and 1.000 us in the other"
        );

        let mut cut = test_reports::report(1, &[("r", &[Some(&[50])])]);
        cut.ranks = 1_440_000;
        let mut whole = cut.clone();
        if let Some(events) = &mut cut.regions[0].events {
            events.ranks = (0..1_200).map(|i| i * i).collect();
            events.groups[0].ranks = events.ranks.clone();
        }
        if let Some(events) = &mut whole.regions[0].events {
            events.ranks = (0..1_440_000).collect();
            events.groups[0].ranks = events.ranks.clone();
        }
        let diff = ReportDiff::new(&cut, &whole).unwrap();
        // The list ends with the square of 1000, as 0 and 1 are one run; ranks beyond it may be
        // squares or not.
        let region = &diff.regions[0];
        assert_eq!(region.undetermined, 1_440_000 - 1_000_001);
        assert_eq!(region.moves.len(), 1);
        assert_eq!(region.moves[0].ranks.len(), 1_000_001 - 1_001);
        // With this many ranks, moves are skipped.
        (cut.ranks, whole.ranks) = (u32::MAX, u32::MAX);
        let diff = ReportDiff::new(&cut, &whole).unwrap();
        assert_eq!(
            (diff.regions[0].moves.len(), diff.regions[0].undetermined),
            (0, u32::MAX)
        );
    }
}
