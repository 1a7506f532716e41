//! Variance of a sample, and confidence intervals of its mean.

use super::chi_squared::chi_squared_below;
use super::{Confidence, Interval, Sample};

/// These functions need at least two values, and return `None` for one.
impl Sample<'_> {
    /// Variance: sum of squared distances from the mean, divided by the count minus one.
    ///
    /// Infinite if values are more than about 1e154 apart.
    pub fn variance(&self) -> Option<f64> {
        if self.len() < 2 {
            return None;
        }
        let (mean, count) = (self.mean(), self.len() as f64);
        let distances = || self.values().iter().map(|value| value - mean);
        // The second sum is zero except for the rounding of the mean; it corrects the first.
        let squares = distances().map(|distance| distance * distance).sum::<f64>();
        if squares.is_infinite() {
            return Some(squares);
        }
        let rounding = distances().sum::<f64>();
        Some((squares - rounding * rounding / count).max(0.0) / (count - 1.0))
    }

    /// Standard deviation.
    pub fn standard_deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Confidence interval of the standard deviation, by the chi-squared distribution: valid if values are normal. `None` also for
    /// equal values.
    pub fn deviation_interval(&self, confidence: Confidence) -> Option<Interval> {
        let deviation = self
            .standard_deviation()
            .filter(|deviation| *deviation > 0.0)?;
        let freedom = u32::try_from(self.len() - 1).ok()?;
        let limit =
            |share| deviation * (f64::from(freedom) / chi_squared_below(share, freedom)).sqrt();
        Some(Interval {
            low: limit(1.0 - confidence.tail()),
            high: limit(confidence.tail()),
        })
    }

    /// Standard error of the mean of independent values.
    pub fn standard_error(&self) -> Option<f64> {
        self.variance()
            .map(|variance| (variance / self.len() as f64).sqrt())
    }

    /// Standard deviation relative to the absolute mean; `None` also if the mean is zero.
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        self.relative_to_mean(self.standard_deviation()?)
    }

    /// Standard error relative to the absolute mean; `None` also if the mean is zero. SKaMPI
    /// measures until this is small.
    pub fn relative_standard_error(&self) -> Option<f64> {
        self.relative_to_mean(self.standard_error()?)
    }

    /// Confidence interval of the mean by Student's distribution: valid if means are normal.
    /// MPIBlib measures until this is narrow.
    pub fn mean_interval(&self, confidence: Confidence) -> Option<Interval> {
        let reach = self.standard_error()? * confidence.critical_t((self.len() - 1) as f64);
        let mean = self.mean();
        Some(Interval {
            low: mean - reach,
            high: mean + reach,
        })
    }

    fn relative_to_mean(&self, spread: f64) -> Option<f64> {
        let mean = self.mean().abs();
        (mean > 0.0).then(|| spread / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deviations_and_intervals_are_those_of_r() {
        for pair in golden::PAIRS {
            let mut x = pair.x.to_vec();
            let sample = Sample::new(&mut x).unwrap();
            let Some((deviation, intervals)) = pair.spread else {
                assert!(
                    sample.variance().is_none_or(|variance| variance == 0.0),
                    "{}",
                    pair.name
                );
                continue;
            };
            let found = sample.standard_deviation().unwrap();
            assert!(
                (found / deviation - 1.0).abs() < 1e-13,
                "{}: {found} is not {deviation}",
                pair.name
            );
            for (level, (low, high)) in [0.95, 0.99].into_iter().zip(intervals) {
                let found = sample
                    .mean_interval(Confidence::new(level).unwrap())
                    .unwrap();
                let close = |a: f64, b: f64| {
                    (a - b).abs() <= 1e-12 * (b - sample.mean()).abs() + 1e-15 * b.abs()
                };
                assert!(
                    close(found.low, low) && close(found.high, high),
                    "{}: {found:?}",
                    pair.name
                );
            }
        }
    }

    #[test]
    fn one_value_has_no_spread_and_zero_no_shares() {
        let mut one = [5.0];
        let one = Sample::new(&mut one).unwrap();
        assert_eq!(
            (
                one.variance(),
                one.standard_deviation(),
                one.standard_error()
            ),
            (None, None, None)
        );
        assert_eq!(
            (
                one.coefficient_of_variation(),
                one.relative_standard_error()
            ),
            (None, None)
        );
        assert_eq!(one.mean_interval(Confidence::USUAL), None);
        let mut around_zero = [-1.0, 1.0];
        let around_zero = Sample::new(&mut around_zero).unwrap();
        assert_eq!(
            (around_zero.variance(), around_zero.standard_error()),
            (Some(2.0), Some(1.0))
        );
        assert_eq!(
            (
                around_zero.coefficient_of_variation(),
                around_zero.relative_standard_error()
            ),
            (None, None)
        );
    }

    #[test]
    fn a_variance_that_is_too_large_is_infinite() {
        let mut values = [0.0, 1e200, 3e199, 7.7e199, 1.3e199];
        assert_eq!(
            Sample::new(&mut values).unwrap().variance(),
            Some(f64::INFINITY)
        );
    }

    #[test]
    fn shares_are_of_the_size_relative_to_mean() {
        for sign in [1.0, -1.0] {
            let mut values = [2.0 * sign, 4.0 * sign, 6.0 * sign, 8.0 * sign];
            let sample = Sample::new(&mut values).unwrap();
            let deviation = (20.0_f64 / 3.0).sqrt();
            assert!((sample.coefficient_of_variation().unwrap() - deviation / 5.0).abs() < 1e-15);
            assert!((sample.relative_standard_error().unwrap() - deviation / 10.0).abs() < 1e-15);
        }
    }

    proptest! {
        /// By another formula: half the mean of all squared differences, which is exact for
        /// integers.
        #[test]
        fn the_variance_is_that_of_all_differences(
            values in prop::collection::vec(0_u32..1_000, 2..40),
            far in prop::sample::select(vec![0.0, 1e6, 1e12, 4e15]),
        ) {
            let squares = values.iter().flat_map(|a| values.iter().map(|b| (f64::from(*a) - f64::from(*b)).powi(2)));
            let pairs = (values.len() * (values.len() - 1)) as f64;
            let expected = squares.sum::<f64>() / (2.0 * pairs);
            let mut moved: Vec<f64> = values.iter().map(|value| f64::from(*value) + far).collect();
            let found = Sample::new(&mut moved).unwrap().variance().unwrap();
            prop_assert!((found - expected).abs() <= 1e-12 * expected, "{found} is not {expected}");
        }
    }
}
