//! The estimate of Hodges and Lehmann for the shift between two samples.

use super::mann_whitney::deviation;
use super::normal::normal_above;
use super::rank_sum::{COUNTABLE, RankSums};
use super::{Confidence, Interval, RankMethod, Sample};

/// Shift between two samples: the median of all differences between a value of the first and one of
/// the second.
///
/// Without ties, its interval contains the shifts that the test of Wilcoxon, Mann and Whitney does not
/// reject, and is that of R's `wilcox.test`. With ties, it is the interval that would follow if they
/// were broken at random: its ends are among the differences and belong to it, so that its confidence
/// is at least that of continuous values (Noether 1967).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HodgesLehmann {
    /// The shift, first sample minus second.
    pub shift: f64,
    /// Confidence interval of the shift.
    pub interval: Interval,
    /// Confidence of the interval: at least the wanted one, unless the samples are so small that
    /// even the range of all differences has less.
    pub confidence: f64,
    /// Method of the probabilities; exact if both samples have fewer than 50 values.
    pub method: RankMethod,
}

impl HodgesLehmann {
    /// Estimates the shift in about a hundred passes over both samples, without additional memory.
    #[must_use]
    pub fn new(first: &Sample<'_>, second: &Sample<'_>, confidence: Confidence) -> Self {
        let differences = Differences {
            first: first.values(),
            second: second.values(),
        };
        let pairs = differences.count();
        let (skipped, beyond, method) = if first.len() < COUNTABLE && second.len() < COUNTABLE {
            let sums = RankSums::count(first.len(), second.len());
            let (skipped, beyond) = skip(pairs, confidence, |at_most| sums.at_most(at_most));
            (skipped, beyond, RankMethod::Exact)
        } else {
            let deviation = deviation(first.len(), second.len(), 0.0);
            let middle = 0.5 * pairs as f64;
            let at_most = |count| normal_above((middle - 0.5 - count as f64) / deviation);
            let (skipped, beyond) = skip(pairs, confidence, at_most);
            (skipped, beyond, RankMethod::Normal)
        };
        let interval = Interval {
            low: differences.nth(skipped),
            high: differences.nth(pairs - 1 - skipped),
        };
        Self {
            shift: differences.median(),
            interval,
            confidence: (1.0 - 2.0 * beyond).max(0.0),
            method,
        }
    }

    /// Returns true if the interval excludes zero.
    pub fn is_evident(&self) -> bool {
        !self.interval.contains(0.0)
    }
}

/// Number of differences to skip at each end, and the probability beyond one end of the interval.
pub(super) fn skip(
    pairs: usize,
    confidence: Confidence,
    at_most: impl Fn(usize) -> f64,
) -> (usize, f64) {
    // As in R, a probability that equals the tail except for rounding is not below it.
    let tail = confidence.tail() * (1.0 - 1e-12);
    // Half of the differences are never in a tail.
    let (mut below, mut above) = (0, pairs.div_ceil(2));
    while below < above {
        let middle = below + (above - below) / 2;
        if at_most(middle) < tail {
            below = middle + 1;
        } else {
            above = middle;
        }
    }
    let skipped = below.saturating_sub(1);
    (skipped, at_most(skipped))
}

/// All differences of a value of the first sample and one of the second; both are sorted.
struct Differences<'a> {
    first: &'a [f64],
    second: &'a [f64],
}

impl Differences<'_> {
    fn count(&self) -> usize {
        self.first.len() * self.second.len()
    }

    fn median(&self) -> f64 {
        median_by_index(self.count(), |place| self.nth(place))
    }

    /// The difference at this index in sorted order.
    fn nth(&self, place: usize) -> f64 {
        let last = |values: &[f64]| values[values.len() - 1];
        let least = self.first[0] - last(self.second);
        let greatest = last(self.first) - self.second[0];
        nth_by_counting([least, greatest], place, |limit| self.count_up_to(limit))
    }

    /// Number of differences up to `limit`.
    fn count_up_to(&self, limit: f64) -> usize {
        // The larger the first value, the larger must the second be.
        let (mut count, mut rest) = (0, self.second);
        for value in self.first {
            while let [smallest, larger @ ..] = rest
                && value - smallest > limit
            {
                rest = larger;
            }
            count += rest.len();
        }
        count
    }
}

/// The middle one of sorted values, or the mean of the two middle ones.
pub(super) fn median_by_index(count: usize, nth: impl Fn(usize) -> f64) -> f64 {
    let (below, above) = (nth((count - 1) / 2), nth(count / 2));
    below + 0.5 * (above - below)
}

/// The value at this index in sorted order, without computing all of them, given the least and the greatest one and the number of
/// those up to a limit: an `f64` has 64 bits, so 64 bisections of the range of its ordered bit patterns find it exactly.
pub(super) fn nth_by_counting(
    [least, greatest]: [f64; 2],
    place: usize,
    count_up_to: impl Fn(f64) -> usize,
) -> f64 {
    let (mut below, mut above) = (order(least), order(greatest));
    while below < above {
        let middle = below.midpoint(above);
        if count_up_to(unorder(middle)) > place {
            above = middle;
        } else {
            below = middle + 1;
        }
    }
    // Removes the sign of a negative zero.
    unorder(below) + 0.0
}

const SIGN: u64 = 1 << 63;

/// Maps an `f64` to an integer in the same order: negative numbers are stored as sign and
/// magnitude, so that a larger bit pattern is a smaller number.
fn order(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// Inverse of [`order`].
fn unorder(order: u64) -> f64 {
    f64::from_bits(if order & SIGN == 0 {
        !order
    } else {
        order & !SIGN
    })
}

#[cfg(test)]
mod tests {
    use super::super::{MannWhitney, golden};
    use super::*;
    use proptest::prelude::*;

    const LEVELS: [f64; 3] = [0.9, 0.95, 0.99];

    #[test]
    fn shifts_and_intervals_are_those_of_r() {
        for pair in golden::PAIRS {
            let (mut x, mut y) = (pair.x.to_vec(), pair.y.to_vec());
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            for (level, (low, high)) in LEVELS.into_iter().zip(pair.intervals) {
                let found = HodgesLehmann::new(&x, &y, Confidence::new(level).unwrap());
                let ties = [pair.x, pair.y].concat();
                let ties = (1..ties.len()).any(|i| ties[..i].contains(&ties[i]));
                let [median, numeric] = pair.shifts;
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
                assert!(
                    close(found.shift, median),
                    "{}: {} is not {median}",
                    pair.name,
                    found.shift
                );
                // R's interval is narrower with ties.
                assert!(
                    ties && found.interval.low <= low + 1e-9 && found.interval.high >= high - 1e-9
                        || close(found.interval.low, low) && close(found.interval.high, high),
                    "{}: {found:?}",
                    pair.name
                );
                let differences = Differences {
                    first: x.values(),
                    second: y.values(),
                };
                let count = differences.count();
                let middle = differences.nth((count - 1) / 2)..=differences.nth(count / 2);
                assert!(
                    numeric >= middle.start() - 1e-9 && numeric <= middle.end() + 1e-9,
                    "{}: {numeric}",
                    pair.name
                );
            }
        }
    }

    #[test]
    fn samples_too_small_for_a_confidence_say_so() {
        let (mut x, mut y) = ([1.0, 2.0, 3.5], [11.0, 12.25, 13.0]);
        let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
        let found = HodgesLehmann::new(&x, &y, Confidence::USUAL);
        // Of 20 orders, one has all of the first sample below the second.
        assert_eq!(
            (found.interval, found.confidence),
            (
                Interval {
                    low: -12.0,
                    high: -7.5
                },
                0.9
            )
        );
        assert!(found.is_evident());
        let single = HodgesLehmann::new(
            &Sample::new(&mut [1.0]).unwrap(),
            &Sample::new(&mut [1.0]).unwrap(),
            Confidence::USUAL,
        );
        assert_eq!(
            (single.shift, single.confidence, single.is_evident()),
            (0.0, 0.0, false)
        );
    }

    #[test]
    fn a_probability_that_is_the_tail_but_for_rounding_is_not_below_it() {
        // Three of 20 orders have at most two pairs, and the tail of 70 % is 0.15000000000000002. R agrees.
        let (mut x, mut y) = (
            [0.0],
            core::array::from_fn::<f64, 19, _>(|i| i as f64 + 1.0),
        );
        let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
        let found = HodgesLehmann::new(&x, &y, Confidence::new(0.7).unwrap());
        assert_eq!(
            (found.interval, found.confidence),
            (
                Interval {
                    low: -18.0,
                    high: -2.0
                },
                0.8
            )
        );
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![whole_numbers(), prop::collection::vec(-1e3..1e3, 1..60),]
    }

    fn whole_numbers() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-9_i32..9).prop_map(f64::from), 1..60)
    }

    fn odd_values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(
            prop_oneof![Just(0.0), Just(-0.0), Just(1e-310), Just(-1e300), -1.0..1.0],
            1..20,
        )
    }

    proptest! {
        #[test]
        fn order_statistics_are_those_of_all_differences(
            mut x in prop_oneof![values(), odd_values()], mut y in prop_oneof![values(), odd_values()],
        ) {
            let mut all: Vec<f64> = x.iter().flat_map(|a| y.iter().map(move |b| a - b + 0.0)).collect();
            all.sort_by(f64::total_cmp);
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let differences = Differences { first: x.values(), second: y.values() };
            for place in 0..all.len().min(50) {
                prop_assert_ne!(differences.nth(place).to_bits(), (-0.0_f64).to_bits());
                prop_assert_eq!(differences.nth(place), all[place]);
                prop_assert_eq!(differences.nth(all.len() - 1 - place), all[all.len() - 1 - place]);
            }
            prop_assert_eq!(differences.median(), Sample::new(&mut all).unwrap().median());
        }

        #[test]
        fn the_interval_is_what_the_test_would_not_reject(
            mut x in prop::collection::vec(0.0..50.0, 2..55), mut y in prop::collection::vec(0.0..50.0, 2..55),
        ) {
            let samples = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let found = HodgesLehmann::new(&samples.0, &samples.1, Confidence::USUAL);
            prop_assume!(found.confidence >= 0.95);
            let mut p_of_shift = |shift: f64| {
                let mut moved: Vec<f64> = x.iter().map(|value| value - shift).collect();
                let (moved, y) = (Sample::new(&mut moved).unwrap(), Sample::new(&mut y).unwrap());
                MannWhitney::new(&moved, &y).p.two_sided
            };
            let Interval { low, high } = found.interval;
            prop_assert!(p_of_shift(low - 1e-9) < 0.05);
            prop_assert!(p_of_shift(high + 1e-9) < 0.05);
            if high - low > 1e-8 {
                prop_assert!(p_of_shift(low + 1e-9) >= 0.05);
                prop_assert!(p_of_shift(high - 1e-9) >= 0.05);
            }
        }

        /// Ties are broken by much less than the step of the values.
        #[test]
        fn with_ties_the_interval_is_the_closure_of_any_breaking(
            mut x in whole_numbers(), mut y in whole_numbers(), seed in 0_u64..,
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut broken = |values: &[f64]| values.iter().map(|value| value + 1e-9 * random.f64()).collect::<Vec<_>>();
            let (mut a, mut b) = (broken(&x), broken(&y));
            let found = HodgesLehmann::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap(), Confidence::USUAL);
            let of_broken = HodgesLehmann::new(&Sample::new(&mut a).unwrap(), &Sample::new(&mut b).unwrap(), Confidence::USUAL);
            prop_assert!((found.interval.low - of_broken.interval.low).abs() < 1e-8);
            prop_assert!((found.interval.high - of_broken.interval.high).abs() < 1e-8);
            prop_assert_eq!(found.confidence, of_broken.confidence);
        }

        #[test]
        fn it_follows_a_shift_a_scale_and_a_swap(mut x in values(), mut y in values(), by in -99_i32..99) {
            let mut moved: Vec<f64> = x.iter().map(|value| 4.0 * (value + f64::from(by))).collect();
            let mut scaled: Vec<f64> = y.iter().map(|value| 4.0 * value).collect();
            let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
            let found = HodgesLehmann::new(&x, &y, Confidence::USUAL);
            let (moved, scaled) = (Sample::new(&mut moved).unwrap(), Sample::new(&mut scaled).unwrap());
            let shifted = HodgesLehmann::new(&moved, &scaled, Confidence::USUAL);
            let follows = |after: f64, before: f64| (after - 4.0 * (before + f64::from(by))).abs() < 1e-9;
            prop_assert!(follows(shifted.shift, found.shift));
            let back = HodgesLehmann::new(&y, &x, Confidence::USUAL);
            prop_assert_eq!(back.interval, Interval { low: 0.0 - found.interval.high, high: 0.0 - found.interval.low });
            prop_assert!((back.shift + found.shift).abs() <= 1e-12 * found.shift.abs());
            prop_assert!(found.interval.contains(found.shift));
        }
    }
}
