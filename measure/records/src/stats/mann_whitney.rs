//! The test of Wilcoxon, Mann and Whitney: values of one sample tend to be smaller than those of
//! the other.

use super::normal::normal_above;
use super::rank_sum::{COUNTABLE, RankSums};
use super::{PValues, Sample};

/// Result of the test of Wilcoxon, Mann and Whitney.
///
/// It assumes nothing about the distributions. Therefore Hunold 2016 uses it to compare medians
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
    /// Counting all divisions of the values.
    Exact,
    /// Normal distribution, with a correction for continuity; that of the test also for ties.
    Normal,
}

impl MannWhitney {
    /// Compares two samples; exactly if both have fewer than 50 values.
    ///
    /// Equal values have the mean of their ranks, and all divisions of the values that occurred count:
    /// R's `wilcox.test` and SciPy's `mannwhitneyu` use the normal distribution as soon as a value occurs
    /// twice, whose p values can be below every one that so few launches could give.
    #[must_use]
    pub fn new(first: &Sample<'_>, second: &Sample<'_>) -> Self {
        let ranks = RankedSamples::new(first, second);
        if !ranks.countable() {
            return Self::normal(&ranks);
        }
        // Whole numbers: the pairs without ties, and half pairs.
        let p = if ranks.ties == 0.0 {
            let sums = RankSums::count(ranks.first, ranks.second);
            let pairs = ranks.u as usize;
            PValues::from_tails(sums.at_most(pairs), sums.at_least(pairs))
        } else {
            let sums = RankSums::count_tied(ranks.first, &ranks.groups);
            let half_pairs = (2.0 * ranks.u) as usize;
            PValues::from_tails(sums.at_most(half_pairs), sums.at_least(half_pairs))
        };
        Self {
            u: ranks.u,
            method: RankMethod::Exact,
            p,
        }
    }

    /// Compares by the normal distribution, with p values that are not below the least that any division
    /// of these values has.
    fn normal(ranks: &RankedSamples) -> Self {
        let deviation = ranks.deviation();
        let p = if deviation > 0.0 {
            let above_mean = ranks.above_mean();
            // The continuity correction is half a step towards the mean.
            let less = normal_above(-(above_mean + 0.5) / deviation);
            let greater = normal_above((above_mean - 0.5) / deviation);
            let [least_less, least_greater] = ranks.least_tails();
            PValues::from_tails(less.max(least_less), greater.max(least_greater))
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
    /// Number of times that each value occurs, in ascending order of the values.
    groups: Vec<usize>,
}

impl RankedSamples {
    pub(super) fn new(first: &Sample<'_>, second: &Sample<'_>) -> Self {
        let (mut rest, mut others) = (first.values(), second.values());
        let (mut u, mut ties, mut groups) = (0.0, 0.0, Vec::new());
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
            groups.push(here + there);
            (rest, others) = (&rest[here..], &others[there..]);
        }
        Self {
            first: first.len(),
            second: second.len(),
            u,
            ties,
            groups,
        }
    }

    /// Returns true if the divisions can be counted.
    fn countable(&self) -> bool {
        self.first < COUNTABLE && self.second < COUNTABLE
    }

    /// Statistic above its mean if the samples have the same distribution.
    pub(super) fn above_mean(&self) -> f64 {
        self.u - 0.5 * self.pairs()
    }

    /// Probability of the divisions with the smallest and with the largest statistic.
    pub(super) fn least_tails(&self) -> [f64; 2] {
        let divisions = log_choose(self.first + self.second, self.first);
        let least = |groups: &mut dyn Iterator<Item = &usize>| {
            let mut rest = self.first;
            for &group in groups {
                if group > rest {
                    // All divisions that take the rest of this group have the same statistic.
                    return (log_choose(group, rest) - divisions).exp();
                }
                rest -= group;
            }
            1.0
        };
        [
            least(&mut self.groups.iter()),
            least(&mut self.groups.iter().rev()),
        ]
    }

    fn pairs(&self) -> f64 {
        self.first as f64 * self.second as f64
    }

    /// Standard deviation of the statistic if the samples have the same distribution.
    pub(super) fn deviation(&self) -> f64 {
        deviation(self.first, self.second, self.ties)
    }
}

/// Logarithm of the number of choices of `some` of `all`.
fn log_choose(all: usize, some: usize) -> f64 {
    let some = some.min(all - some);
    (0..some)
        .map(|i| ((all - i) as f64 / (some - i) as f64).ln())
        .sum()
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
fn cube_less_one(times: usize) -> f64 {
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

    fn approximate(first: &Sample<'_>, second: &Sample<'_>) -> MannWhitney {
        MannWhitney::normal(&RankedSamples::new(first, second))
    }

    /// Where values occur twice, R has only the normal distribution.
    #[test]
    fn p_values_are_those_of_r() {
        for pair in golden::PAIRS {
            let (mut x, mut y) = (pair.x.to_vec(), pair.y.to_vec());
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let found = MannWhitney::new(&x, &y);
            let (u, exact, p) = pair.wilcoxon;
            assert_eq!(found.u, u, "{}", pair.name);
            if exact || found.method == RankMethod::Normal {
                assert_close(found.p, &p, pair.name);
            }
            let normal = approximate(&x, &y).p;
            let least = RankedSamples::new(&x, &y).least_tails();
            if normal.less > least[0] && normal.greater > least[1] {
                assert_close(normal, &pair.approximate, pair.name);
            }
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
        let test = |(mut x, mut y): (Vec<f64>, Vec<f64>), exact: [f64; 3], normal: [f64; 3]| {
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let found = MannWhitney::new(&x, &y);
            assert_eq!(found.method, RankMethod::Exact);
            assert_close(found.p, &exact, "SciPy");
            assert_close(approximate(&x, &y).p, &normal, "SciPy");
        };
        test(
            (
                vec![1.25, 7.5, 3.0, 12.0],
                vec![2.5, 9.0, 10.0, 15.5, 20.0, 3.75],
            ),
            [0.35238095238095235, 0.17619047619047618, 0.8714285714285714],
            [0.3373556517763615, 0.16867782588818075, 0.879522665649215],
        );
        test(
            (steps(40, 0.0), steps(45, 12.5)),
            [0.1270754014089124, 0.0635377007044562, 0.9375596203716149],
            [0.12661627356189578, 0.06330813678094789, 0.9377782327474374],
        );
        test(
            (
                vec![1.0, 2.0, 2.0, 3.0, 5.0],
                vec![2.0, 3.0, 3.0, 8.0, 9.0, 9.0],
            ),
            [0.12121212121212122, 0.06060606060606061, 0.9653679653679653],
            [0.1130499788563229, 0.05652498942816145, 0.9617245753150733],
        );
    }

    /// Few launches by a coarse clock, all of the first below all of the second.
    #[test]
    fn no_p_value_is_below_the_least_of_so_few_values() {
        for (launches, least) in [(3, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            let (mut x, mut y) = (vec![80.0; launches], vec![90.0; launches]);
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            assert_close(
                MannWhitney::new(&x, &y).p,
                &[least, least / 2.0, 1.0],
                "steps",
            );
        }
        // One of 120 values is another one: in half of the divisions it is in the first sample.
        let (mut x, mut y) = ([vec![1.0; 59], vec![2.0]].concat(), vec![1.0; 60]);
        let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
        let found = MannWhitney::new(&x, &y);
        assert_eq!(found.method, RankMethod::Normal);
        assert!(
            (found.p.greater - 0.5).abs() < 1e-12 && found.p.two_sided > 0.999,
            "{found:?}"
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
        assert_eq!((found.u, found.p.less), (1.5, 0.5));
    }

    /// The three probabilities by definition, from all divisions of the values.
    fn enumerated(x: &[f64], y: &[f64]) -> [f64; 3] {
        let all = [x, y].concat();
        let larger = |chosen: u32| {
            let positions =
                |picked| (0..all.len()).filter(move |place| (chosen >> place & 1 == 1) == picked);
            positions(true)
                .map(|place| {
                    let half_pairs = |other: usize| {
                        usize::from(all[other] < all[place]) + usize::from(all[other] <= all[place])
                    };
                    positions(false).map(half_pairs).sum::<usize>()
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

    /// Values, divided into two samples; some of them equal, or none.
    fn divided() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        let values = prop_oneof![
            prop::collection::vec(-3_i32..3, 2..10),
            prop::collection::hash_set(-1_000_i32..1_000, 2..10)
                .prop_map(|values| values.into_iter().collect()),
        ];
        (values, 0.0..1.0).prop_map(|(values, share)| {
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
        fn exact_p_values_are_those_of_all_divisions((mut x, mut y) in divided()) {
            let expected = enumerated(&x, &y);
            let found = MannWhitney::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
            prop_assert_eq!(found.method, RankMethod::Exact);
            for (found, expected) in sides(found.p).into_iter().zip(expected) {
                prop_assert!((found - expected).abs() < 1e-14);
            }
            let ranks = RankedSamples::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
            let [less, greater] = ranks.least_tails();
            prop_assert!(found.p.less >= less * (1.0 - 1e-12) && found.p.greater >= greater * (1.0 - 1e-12));
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
