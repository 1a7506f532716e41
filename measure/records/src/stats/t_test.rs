//! Welch's t-test for a difference between two means.

use super::student::student_above;
use super::{PValues, Sample, StatsError};

/// Result of Welch's t-test of two samples, which need not have the same variance.
///
/// The second test of Hunold 2016, for means of launches. It is valid if these are normal: see
/// [`ShapiroWilk`](super::ShapiroWilk).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct WelchTest {
    /// Difference of the means, in standard errors.
    pub t: f64,
    /// Degrees of freedom by Welch and Satterthwaite; may be fractional.
    pub freedom: f64,
    /// p value of each alternative.
    pub p: PValues,
}

impl WelchTest {
    /// Compares the means of two samples, as R's `t.test` does.
    ///
    /// # Errors
    /// If a sample has fewer than two values, all values are the same in each sample, or values are
    /// too far apart.
    pub fn new(first: &Sample<'_>, second: &Sample<'_>) -> Result<Self, StatsError> {
        let mean_variance = |sample: &Sample<'_>| match sample.variance() {
            Some(variance) => Ok(variance / sample.len() as f64),
            None => Err(StatsError::TooFew {
                needed: 2,
                found: sample.len(),
            }),
        };
        let (first_part, second_part) = (mean_variance(first)?, mean_variance(second)?);
        let variance = first_part + second_part;
        if variance <= 0.0 {
            return Err(StatsError::NoSpread);
        }
        if !variance.is_finite() {
            return Err(StatsError::TooWide);
        }
        let t = (first.mean() - second.mean()) / variance.sqrt();
        // As shares of the sum, so that no square overflows or underflows.
        let lost =
            |part: f64, sample: &Sample<'_>| (part / variance).powi(2) / (sample.len() - 1) as f64;
        let freedom = 1.0 / (lost(first_part, first) + lost(second_part, second));
        Ok(Self {
            t,
            freedom,
            p: PValues::from_tails(student_above(-t, freedom), student_above(t, freedom)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tests_are_those_of_r() {
        for pair in golden::PAIRS {
            let (mut x, mut y) = (pair.x.to_vec(), pair.y.to_vec());
            let found =
                WelchTest::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap());
            let Some((t, freedom, p)) = pair.welch else {
                assert!(found.is_err(), "{}", pair.name);
                continue;
            };
            let found = found.unwrap();
            // An offset of a billion costs seven digits of both variances.
            let bound = if pair.name == "far from zero" {
                1e-8
            } else {
                1e-10
            };
            let close = |a: f64, b: f64| (a - b).abs() <= bound * b.abs();
            let p_found = [found.p.two_sided, found.p.less, found.p.greater];
            let all_close = close(found.t, t) && close(found.freedom, freedom);
            assert!(
                all_close && p_found.iter().zip(p).all(|(a, b)| close(*a, b)),
                "{}: {found:?}",
                pair.name
            );
        }
    }

    #[test]
    fn it_needs_two_values_each_and_some_spread() {
        let error = |x: &mut [f64], y: &mut [f64]| {
            WelchTest::new(&Sample::new(x).unwrap(), &Sample::new(y).unwrap()).unwrap_err()
        };
        assert_eq!(
            error(&mut [1.0, 2.0], &mut [3.0]),
            StatsError::TooFew {
                needed: 2,
                found: 1
            }
        );
        assert_eq!(
            error(&mut [1.0], &mut [3.0, 4.0]),
            StatsError::TooFew {
                needed: 2,
                found: 1
            }
        );
        assert_eq!(error(&mut [0.1; 3], &mut [0.7; 5]), StatsError::NoSpread);
        assert_eq!(error(&mut [0.0, 1e200], &mut [0.7; 5]), StatsError::TooWide);
        let (mut x, mut y) = ([1.0, 2.0], [3.0; 5]);
        let found =
            WelchTest::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap()).unwrap();
        assert_eq!((found.t, found.freedom), (-3.0, 1.0));
    }

    proptest! {
        #[test]
        fn it_follows_a_swap_a_scale_and_a_shift(
            mut x in prop::collection::vec(0_u32..1_000, 2..40), mut y in prop::collection::vec(0_u32..1_000, 2..40),
        ) {
            x.extend([0, 1]);
            y.extend([0, 1]);
            let floats = |values: &[u32], to: &dyn Fn(f64) -> f64| -> Vec<f64> {
                values.iter().map(|value| to(f64::from(*value))).collect()
            };
            let test = |to: &dyn Fn(f64) -> f64, x: &[u32], y: &[u32]| {
                let (mut x, mut y) = (floats(x, to), floats(y, to));
                WelchTest::new(&Sample::new(&mut x).unwrap(), &Sample::new(&mut y).unwrap()).unwrap()
            };
            let found = test(&|value| value, &x, &y);
            let swapped = test(&|value| value, &y, &x);
            prop_assert_eq!((found.t, found.p.less), (-swapped.t, swapped.p.greater));
            prop_assert!((found.p.less + found.p.greater - 1.0).abs() < 1e-13);
            let moved = test(&|value| 1e100 * (value + 17.0), &x, &y);
            prop_assert!((found.t - moved.t).abs() < 1e-10 * found.t.abs() + 1e-12);
            prop_assert!((found.p.less - moved.p.less).abs() < 1e-10);
        }
    }
}
