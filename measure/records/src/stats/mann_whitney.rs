//! The test of Wilcoxon, Mann and Whitney: values of one sample tend to be smaller than those of
//! the other.

use super::normal::normal_above;
use super::rank_sum::{COUNTABLE, RankSums};
use super::{PValues, Sample};

/// Result of the test of Wilcoxon, Mann and Whitney.
///
/// It assumes nothing about the distributions. Therefore the 2016 paper uses it to compare medians
/// of launches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs of values in which that of the first sample is larger; a tie counts one
    /// half. R calls it W.
    pub u: f64,
    /// Method of the p values.
    pub method: RankMethod,
    /// p value of each alternative.
    pub p: PValues,
}

/// Method of probabilities of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RankMethod {
    /// Counting all orders of the values.
    Exact,
    /// Normal distribution, with corrections for ties and for continuity.
    Normal,
}

impl MannWhitney {
    /// Compares two samples; exactly if both have fewer than 50 values and no value occurs twice,
    /// as R's `wilcox.test` does by default.
    ///
    /// If all values of both samples are the same, p is 1, where R returns no number.
    #[must_use]
    pub fn new(first: &Sample<'_>, second: &Sample<'_>) -> Self {
        let ranks = RankedSamples::new(first, second);
        if !ranks.countable() {
            return Self::normal(&ranks);
        }
        // An integer, as there are no ties.
        let pairs = ranks.u as usize;
        let sums = RankSums::count(ranks.first, ranks.second);
        let p = PValues::from_tails(sums.at_most(pairs), sums.at_least(pairs));
        Self {
            u: ranks.u,
            method: RankMethod::Exact,
            p,
        }
    }

    /// Compares two samples by the normal distribution even if the exact test is possible: for
    /// tables in which some rows have ties, so that all rows use the same method.
    #[must_use]
    pub fn approximate(first: &Sample<'_>, second: &Sample<'_>) -> Self {
        Self::normal(&RankedSamples::new(first, second))
    }

    fn normal(ranks: &RankedSamples) -> Self {
        let deviation = ranks.deviation();
        let p = if deviation > 0.0 {
            let above_mean = ranks.u - 0.5 * ranks.pairs();
            // The continuity correction is half a step towards the mean.
            let less = normal_above(-(above_mean + 0.5) / deviation);
            PValues::from_tails(less, normal_above((above_mean - 0.5) / deviation))
        } else {
            PValues::NO_EVIDENCE
        };
        Self {
            u: ranks.u,
            method: RankMethod::Normal,
            p,
        }
    }
}

/// Rank statistics of two samples.
#[derive(Debug)]
pub(super) struct RankedSamples {
    first: usize,
    second: usize,
    u: f64,
    /// Sum of `t^3 - t` over all values that occur `t` times.
    ties: f64,
}

impl RankedSamples {
    pub(super) fn new(first: &Sample<'_>, second: &Sample<'_>) -> Self {
        let (mut rest, mut others) = (first.values(), second.values());
        let (mut u, mut ties) = (0.0, 0.0);
        let next = |rest: &[f64], others: &[f64]| match (rest.first(), others.first()) {
            (Some(value), Some(other)) => Some(value.min(*other)),
            (value, other) => value.or(other).copied(),
        };
        while let Some(value) = next(rest, others) {
            let here = rest.partition_point(|candidate| *candidate <= value);
            let there = others.partition_point(|candidate| *candidate <= value);
            let below = second.len() - others.len();
            u += here as f64 * (below as f64 + 0.5 * there as f64);
            ties += cube_less_one(here + there);
            (rest, others) = (&rest[here..], &others[there..]);
        }
        Self {
            first: first.len(),
            second: second.len(),
            u,
            ties,
        }
    }

    /// Returns true if the exact test is possible.
    pub(super) fn countable(&self) -> bool {
        self.first < COUNTABLE && self.second < COUNTABLE && self.ties == 0.0
    }

    fn pairs(&self) -> f64 {
        self.first as f64 * self.second as f64
    }

    /// Standard deviation of the statistic if the samples have the same distribution.
    fn deviation(&self) -> f64 {
        deviation(self.first, self.second, self.ties)
    }
}

/// Standard deviation of the rank sum, for samples of these sizes and this sum of `t^3 - t` over
/// their ties.
pub(super) fn deviation(first: usize, second: usize, ties: f64) -> f64 {
    let (pairs, all) = (first as f64 * second as f64, (first + second) as f64);
    (pairs / 12.0 * (all + 1.0 - ties / (all * (all - 1.0))))
        .max(0.0)
        .sqrt()
}

/// Term of a value that occurs this often in the sum over ties.
pub(super) fn cube_less_one(times: usize) -> f64 {
    let times = times as f64;
    times * (times * times - 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    fn sides(p: PValues) -> [f64; 3] {
        [p.two_sided, p.less, p.greater]
    }

    fn assert_close(found: PValues, expected: &[f64; 3], name: &str) {
        for (found, expected) in sides(found).iter().zip(expected) {
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{name}: {found} is not {expected}"
            );
        }
    }

    #[test]
    fn p_values_are_those_of_r() {
        for pair in golden::PAIRS {
            let (mut x, mut y) = (pair.x.to_vec(), pair.y.to_vec());
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let found = MannWhitney::new(&x, &y);
            let (u, exact, p) = pair.wilcoxon;
            assert_eq!(
                (found.u, found.method == RankMethod::Exact),
                (u, exact),
                "{}",
                pair.name
            );
            assert_close(found.p, &p, pair.name);
            let approximate = MannWhitney::approximate(&x, &y);
            assert_eq!(
                (approximate.u, approximate.method),
                (u, RankMethod::Normal),
                "{}",
                pair.name
            );
            assert_close(approximate.p, &pair.approximate, pair.name);
        }
    }

    /// Printed by `tests/golden/mann_whitney.py`.
    #[test]
    fn p_values_are_those_of_scipy_by_the_same_method() {
        let steps = |count: u32, by: f64| {
            (1..=count)
                .map(|i| f64::from(i * 37 % 101) + by)
                .collect::<Vec<_>>()
        };
        let test = |(mut x, mut y): (Vec<f64>, Vec<f64>),
                    exact: Option<[f64; 3]>,
                    normal: [f64; 3]| {
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let (found, approximate) = (MannWhitney::new(&x, &y), MannWhitney::approximate(&x, &y));
            assert_eq!(found.method == RankMethod::Exact, exact.is_some());
            assert_close(found.p, &exact.unwrap_or(normal), "SciPy");
            assert_close(approximate.p, &normal, "SciPy");
        };
        test(
            (
                vec![1.25, 7.5, 3.0, 12.0],
                vec![2.5, 9.0, 10.0, 15.5, 20.0, 3.75],
            ),
            Some([0.35238095238095235, 0.17619047619047618, 0.8714285714285714]),
            [0.3373556517763615, 0.16867782588818075, 0.879522665649215],
        );
        test(
            (steps(40, 0.0), steps(45, 12.5)),
            Some([0.1270754014089124, 0.0635377007044562, 0.9375596203716149]),
            [0.12661627356189578, 0.06330813678094789, 0.9377782327474374],
        );
        test(
            (
                vec![1.0, 2.0, 2.0, 3.0, 5.0],
                vec![2.0, 3.0, 3.0, 8.0, 9.0, 9.0],
            ),
            None,
            [0.1130499788563229, 0.05652498942816145, 0.9617245753150733],
        );
    }

    #[test]
    fn equal_values_are_no_evidence() {
        let (mut x, mut y) = ([3.5; 4], [3.5; 60]);
        let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
        let found = MannWhitney::new(&x, &y);
        assert_eq!((found.u, sides(found.p)), (120.0, [1.0; 3]));
        assert_eq!(MannWhitney::new(&y, &x).p, PValues::NO_EVIDENCE);
    }

    #[test]
    fn zeros_of_both_signs_are_tied() {
        let (mut x, mut y) = ([-0.0, 1.0], [0.0, 2.0]);
        let found = MannWhitney::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
        assert_eq!((found.u, found.method), (1.5, RankMethod::Normal));
    }

    /// The three probabilities by definition, from all divisions of the values, without ties.
    fn enumerated(x: &[f64], y: &[f64]) -> [f64; 3] {
        let all = [x, y].concat();
        let larger = |chosen: u32| {
            let positions =
                |picked| (0..all.len()).filter(move |place| (chosen >> place & 1 == 1) == picked);
            positions(true)
                .map(|place| {
                    positions(false)
                        .filter(|other| all[*other] < all[place])
                        .count()
                })
                .sum::<usize>()
        };
        let found = larger((1 << x.len()) - 1);
        let choices =
            (0_u32..1 << all.len()).filter(|chosen| chosen.count_ones() as usize == x.len());
        let (mut less, mut greater, mut count) = (0, 0, 0);
        for u in choices.map(larger) {
            count += 1;
            less += usize::from(u <= found);
            greater += usize::from(u >= found);
        }
        let share = |ways| f64::from(ways) / f64::from(count);
        let (less, greater) = (share(less as u32), share(greater as u32));
        [(2.0 * less.min(greater)).min(1.0), less, greater]
    }

    /// Different values, divided into two samples.
    fn without_ties() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        (
            prop::collection::hash_set(-1_000_i32..1_000, 2..10),
            0.0..1.0,
        )
            .prop_map(|(values, share)| {
                let values: Vec<f64> = values.into_iter().map(f64::from).collect();
                let (x, y) = values.split_at(1 + (share * (values.len() - 1) as f64) as usize);
                (x.to_vec(), y.to_vec())
            })
    }

    fn whole_numbers() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-9_i32..9).prop_map(f64::from), 1..70)
    }

    proptest! {
        #[test]
        fn exact_p_values_are_those_of_all_divisions((mut x, mut y) in without_ties()) {
            let expected = enumerated(&x, &y);
            let found = MannWhitney::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
            prop_assert_eq!(found.method, RankMethod::Exact);
            for (found, expected) in sides(found.p).into_iter().zip(expected) {
                prop_assert!((found - expected).abs() < 1e-14);
            }
        }

        #[test]
        fn u_and_ties_are_those_of_the_definition(mut x in whole_numbers(), mut y in whole_numbers()) {
            let ranks = RankedSamples::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
            let half_pairs = |a: &f64| y.iter().map(|b| 2 * u32::from(a > b) + u32::from(a == b)).sum::<u32>();
            prop_assert_eq!(2.0 * ranks.u, f64::from(x.iter().map(half_pairs).sum::<u32>()));
            let occurs = |value: i32| x.iter().chain(&y).filter(|other| **other == f64::from(value)).count() as f64;
            prop_assert_eq!(ranks.ties, (-9..9).map(|value| occurs(value).powi(3) - occurs(value)).sum::<f64>());
        }

        #[test]
        fn swapping_the_samples_swaps_less_and_greater(mut x in whole_numbers(), mut y in whole_numbers()) {
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let (there, back) = (MannWhitney::new(&x, &y), MannWhitney::new(&y, &x));
            prop_assert_eq!(there.u + back.u, (x.len() * y.len()) as f64);
            prop_assert_eq!(there.p.less, back.p.greater);
            prop_assert_eq!(there.p.greater, back.p.less);
            prop_assert_eq!(there.p.two_sided, back.p.two_sided);
        }

        #[test]
        fn only_the_order_counts(mut x in whole_numbers(), mut y in whole_numbers()) {
            let stretch = |values: &[f64]| values.iter().map(|value| value.exp() * 3.0).collect::<Vec<_>>();
            let (mut a, mut b) = (stretch(&x), stretch(&y));
            let found = MannWhitney::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
            let stretched = MannWhitney::new(&Sample::new(&mut a).unwrap(), &Sample::new(&mut b).unwrap());
            prop_assert_eq!(found, stretched);
        }
    }
}
