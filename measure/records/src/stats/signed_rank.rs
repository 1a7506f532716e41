//! Wilcoxon's signed-rank test of pairs of values, and the shift between them by Hodges and Lehmann.

use super::hodges_lehmann::{median_by_index, nth_by_counting, skip};
use super::normal::normal_above;
use super::rank_sum::{COUNTABLE, RankSums};
use super::{Confidence, Interval, PValues, RankMethod, Sample, StatsError};

/// Comparison of pairs: of runs that share all conditions but one.
///
/// It assumes that differences are as often above as below the shift, at every distance from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of positive differences, by their distance from zero. R calls it V.
    pub v: f64,
    /// Method of the p values and of the interval; exact for fewer than 50 pairs.
    pub method: RankMethod,
    /// p value of each alternative; equal pairs are left out, as in R.
    pub p: PValues,
    /// Shift, the median of the means of all two differences.
    pub shift: f64,
    /// Confidence interval of the shift, whose ends are such means.
    pub interval: Interval,
    /// Confidence of the interval: at least the wanted one, unless there are fewer pairs than it needs.
    pub confidence: f64,
}

impl SignedRank {
    /// Compares pairs by their differences, the first value minus the second.
    ///
    /// # Errors
    /// If there is no difference, or one is not a number.
    pub fn new(differences: &[f64], confidence: Confidence) -> Result<Self, StatsError> {
        let mut sorted = differences.to_vec();
        let differences = Sample::new(&mut sorted)?.values();
        let means = PairMeans {
            sorted: differences,
        };
        let (is_exact, pairs) = (differences.len() < COUNTABLE, means.count());
        let (skipped, beyond) = if is_exact {
            let ranks: Vec<usize> = (1..=differences.len()).collect();
            let sums = RankSums::count_signs(&ranks);
            skip(pairs, confidence, |sum| sums.at_most(sum))
        } else {
            let count = differences.len() as f64;
            let (middle, deviation) = moments(count, 0.0);
            skip(pairs, confidence, |sum| {
                normal_above((middle - 0.5 - sum as f64) / deviation)
            })
        };
        let (v, p) = test(differences, is_exact);
        Ok(Self {
            v,
            method: match is_exact {
                true => RankMethod::Exact,
                false => RankMethod::Normal,
            },
            p,
            shift: means.median(),
            interval: Interval {
                low: means.nth(skipped),
                high: means.nth(pairs - 1 - skipped),
            },
            confidence: (1.0 - 2.0 * beyond).max(0.0),
        })
    }
}

/// Means of all two values, each also with itself.
struct PairMeans<'a> {
    sorted: &'a [f64],
}

impl PairMeans<'_> {
    fn count(&self) -> usize {
        self.sorted.len() * (self.sorted.len() + 1) / 2
    }

    fn median(&self) -> f64 {
        median_by_index(self.count(), |place| self.nth(place))
    }

    /// The mean at this index in sorted order.
    fn nth(&self, place: usize) -> f64 {
        let range = [self.sorted[0], self.sorted[self.sorted.len() - 1]];
        nth_by_counting(range, place, |limit| self.count_up_to(limit))
    }

    /// Number of means up to `limit`.
    fn count_up_to(&self, limit: f64) -> usize {
        // The larger the first value, the smaller must the second be, which is not before it.
        let (mut count, mut end) = (0, self.sorted.len());
        for (i, value) in self.sorted.iter().enumerate() {
            while end > i && mean(*value, self.sorted[end - 1]) > limit {
                end -= 1;
            }
            count += end.saturating_sub(i);
        }
        count
    }
}

/// Mean of two values, which does not overflow.
fn mean(one: f64, other: f64) -> f64 {
    0.5 * one + 0.5 * other
}

/// Mean and standard deviation of the sum of ranks of one sign; `ties` is the sum of n^3 - n over groups of n equal distances.
fn moments(count: f64, ties: f64) -> (f64, f64) {
    let mean = count * (count + 1.0) / 4.0;
    (
        mean,
        libm::sqrt(mean * (2.0 * count + 1.0) / 6.0 - ties / 48.0),
    )
}

fn test(differences: &[f64], is_exact: bool) -> (f64, PValues) {
    let mut by_distance: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|difference| *difference != 0.0)
        .collect();
    by_distance.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Twice the ranks: equal distances have the mean of theirs.
    let (mut twice, mut positive, mut ties) = (Vec::new(), 0, 0.0);
    for group in by_distance.chunk_by(|a, b| a.abs() == b.abs()) {
        let rank = 2 * twice.len() + group.len() + 1;
        positive += rank * group.iter().filter(|difference| **difference > 0.0).count();
        twice.extend(group.iter().map(|_| rank));
        let equal = group.len() as f64;
        ties += equal * (equal * equal - 1.0);
    }
    let v = positive as f64 / 2.0;
    let p = if twice.is_empty() {
        PValues::NO_EVIDENCE
    } else if is_exact {
        let sums = RankSums::count_signs(&twice);
        PValues::from_tails(sums.at_most(positive), sums.at_least(positive))
    } else {
        let (mean, deviation) = moments(twice.len() as f64, ties);
        // The continuity correction is half a step towards the mean.
        let less = normal_above((mean - v - 0.5) / deviation);
        let greater = normal_above((v - mean - 0.5) / deviation);
        PValues::from_tails(less, greater)
    };
    (v, p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compared(differences: &[f64]) -> SignedRank {
        SignedRank::new(differences, Confidence::USUAL).unwrap()
    }

    #[track_caller]
    fn expect(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}");
    }

    /// Differences of scores of depression by a therapy (Hollander and Wolfe), the example of R's documentation.
    #[test]
    fn textbook_values_are_those_of_r() {
        let differences = [0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01];
        let found = compared(&differences);
        assert_eq!((found.v, found.method), (40.0, RankMethod::Exact));
        expect(found.p.greater, 0.019_531_25);
        expect(found.p.two_sided, 0.039_062_5);
        expect(found.shift, 0.46);
        expect(found.interval.low, 0.01);
        expect(found.interval.high, 0.786);
        assert!((0.95..0.97).contains(&found.confidence), "{found:?}");
    }

    #[test]
    fn many_pairs_are_compared_by_the_normal_distribution() {
        // Ties, and no difference in every tenth pair.
        let differences: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 10) - 3.0).collect();
        let found = compared(&differences);
        // As SciPy's `wilcoxon(differences, correction=True, method="approx")`.
        assert_eq!((found.v, found.method), (1_152.0, RankMethod::Normal));
        expect(found.p.two_sided, 0.000_404_089_332_987_927_5);
        expect(found.p.less, 0.999_804_472_133_181_6);
    }

    #[test]
    fn the_fewest_pairs_that_can_be_significant_are_six() {
        let found = |pairs: i32| compared(&(1..=pairs).map(f64::from).collect::<Vec<_>>());
        assert_eq!(found(5).p.two_sided, 0.062_5);
        assert_eq!(found(6).p.two_sided, 0.031_25);
        assert_eq!(
            found(6).interval,
            Interval {
                low: 1.0,
                high: 6.0
            }
        );
        assert!(found(5).confidence < 0.95 && found(6).confidence >= 0.95);
    }

    #[test]
    fn equal_pairs_are_no_evidence_and_nothing_is_an_error() {
        let same = compared(&[0.0; 9]);
        assert_eq!((same.v, same.p), (0.0, PValues::NO_EVIDENCE));
        assert_eq!(same.shift, 0.0);
        assert_eq!(
            SignedRank::new(&[], Confidence::USUAL),
            Err(StatsError::Empty)
        );
        assert!(SignedRank::new(&[1.0, f64::NAN], Confidence::USUAL).is_err());
    }

    proptest! {
        #[test]
        fn probabilities_are_those_of_all_signs(differences in prop::collection::vec(-4_i32..=4, 1..10)) {
            let values: Vec<f64> = differences.iter().copied().map(f64::from).collect();
            let found = compared(&values);
            let distances: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).map(f64::abs).collect();
            let below = |a: f64| distances.iter().filter(|b| **b < a).count() as f64;
            let equal = |a: f64| distances.iter().filter(|b| **b == a).count() as f64;
            let ranks: Vec<f64> = distances.iter().map(|a| below(*a) + (equal(*a) + 1.0) / 2.0).collect();
            let sum = |signs: u32| (0..ranks.len()).filter(|i| signs >> i & 1 == 1).map(|i| ranks[i]).sum::<f64>();
            let all = 1_u32 << ranks.len();
            let at_most = (0..all).filter(|signs| sum(*signs) <= found.v).count() as f64 / f64::from(all);
            let at_least = (0..all).filter(|signs| sum(*signs) >= found.v).count() as f64 / f64::from(all);
            prop_assert!((found.p.less - at_most).abs() < 1e-12, "{found:?}, {at_most}");
            prop_assert!((found.p.greater - at_least).abs() < 1e-12, "{found:?}, {at_least}");
        }

        #[test]
        fn means_are_those_of_all_pairs(mut values in prop::collection::vec(-1e3_f64..1e3, 1..30)) {
            values.sort_unstable_by(f64::total_cmp);
            let pairs = (0..values.len()).flat_map(|i| (i..values.len()).map(move |j| (i, j)));
            let mut all: Vec<f64> = pairs.map(|(i, j)| mean(values[i], values[j])).collect();
            all.sort_unstable_by(f64::total_cmp);
            let means = PairMeans { sorted: &values };
            prop_assert_eq!(means.count(), all.len());
            prop_assert!(all.iter().enumerate().all(|(place, mean)| means.nth(place) == *mean));
        }

        #[test]
        fn the_interval_moves_with_the_differences(
            differences in prop::collection::vec(-100_i32..=100, 6..80), by in -50_i32..=50,
        ) {
            let moved = |by: i32| differences.iter().map(|value| f64::from(value + by)).collect::<Vec<_>>();
            let (here, there) = (compared(&moved(0)), compared(&moved(by)));
            prop_assert_eq!(here.shift + f64::from(by), there.shift);
            prop_assert_eq!(here.interval.low + f64::from(by), there.interval.low);
            prop_assert!(here.interval.low <= here.shift && here.shift <= here.interval.high);
        }
    }
}
