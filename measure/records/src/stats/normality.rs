//! The test of Shapiro and Wilk for normality.

use super::normal::{normal_above, normal_quantile, polynomial};
use super::{Sample, StatsError};

/// Result of the test of Shapiro and Wilk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShapiroWilk {
    /// Squared correlation between the values and those of a normal distribution: 1 is perfect.
    pub w: f64,
    /// Probability of a `w` this small if the values are normal.
    pub p: f64,
}

/// Sample sizes that the approximation is known for.
const KNOWN: core::ops::RangeInclusive<usize> = 3..=5_000;

impl ShapiroWilk {
    /// Tests a sample by Royston's approximation (1995, algorithm AS R94), as R's `shapiro.test`
    /// does.
    ///
    /// # Errors
    /// If there are fewer than 3 or more than 5,000 values, all are the same, or they are too far
    /// apart.
    pub fn new(sample: &Sample<'_>) -> Result<Self, StatsError> {
        let found = sample.len();
        if found < *KNOWN.start() {
            return Err(StatsError::TooFew {
                needed: *KNOWN.start(),
                found,
            });
        }
        if found > *KNOWN.end() {
            return Err(StatsError::TooMany {
                allowed: *KNOWN.end(),
                found,
            });
        }
        let unexplained = unexplained(sample)?;
        Ok(Self {
            w: 1.0 - unexplained,
            p: p(unexplained, found),
        })
    }

    /// Returns true if the test does not reject a normal distribution at this level.
    pub fn is_normal(&self, level: f64) -> bool {
        self.p >= level
    }
}

/// Computes `1 - w` directly: in large samples, `w` is so close to 1 that the difference would lose
/// its digits.
fn unexplained(sample: &Sample<'_>) -> Result<f64, StatsError> {
    let values = sample.values();
    let range = values[values.len() - 1] - values[0];
    if range == 0.0 {
        return Err(StatsError::NoSpread);
    }
    if !range.is_finite() {
        return Err(StatsError::TooWide);
    }
    // The weights are antisymmetric: sum over the pairs from both ends.
    let weights = weights(values.len());
    let pairs = values
        .iter()
        .zip(values.iter().rev())
        .map(|(low, high)| (high - low) / range);
    let explained = pairs
        .zip(&weights)
        .map(|(distance, weight)| weight * distance)
        .sum::<f64>();
    let mean = sample.mean();
    let squares = values
        .iter()
        .map(|value| ((value - mean) / range).powi(2))
        .sum::<f64>();
    let norm = (squares * 2.0 * weights.iter().map(|weight| weight * weight).sum::<f64>()).sqrt();
    // Rounding errors must not make it negative.
    Ok(((norm - explained) * (norm + explained) / (norm * norm)).max(0.0))
}

/// Weights of the larger half of a sample of this size, from the largest down.
fn weights(count: usize) -> Vec<f64> {
    if count == 3 {
        return vec![core::f64::consts::FRAC_1_SQRT_2];
    }
    // Approximate expected values of the order statistics (Blom).
    let expected = |place: usize| -normal_quantile((place as f64 + 0.625) / (count as f64 + 0.25));
    let mut weights: Vec<f64> = (0..count / 2).map(expected).collect();
    let length = 2.0 * weights.iter().map(|weight| weight * weight).sum::<f64>();
    // Royston's corrections of the outermost weights; the others share the rest of the length.
    let rare = 1.0 / (count as f64).sqrt();
    let corrections: &[[f64; 6]] = if count > 5 {
        &[OUTERMOST, NEXT]
    } else {
        &[OUTERMOST]
    };
    let (mut before, mut after) = (length, 1.0);
    for (weight, correction) in weights.iter_mut().zip(corrections) {
        before -= 2.0 * *weight * *weight;
        *weight = *weight / length.sqrt() + polynomial(rare, correction);
        after -= 2.0 * *weight * *weight;
    }
    let scale = (after / before).sqrt();
    weights
        .iter_mut()
        .skip(corrections.len())
        .for_each(|weight| *weight *= scale);
    weights
}

/// Probability of this `1 - w` or more in normal samples: a transformation of it is nearly normal.
fn p(unexplained: f64, count: usize) -> f64 {
    let (count, log) = (count as f64, (count as f64).ln());
    if count == 3.0 {
        // The exact distribution. W is at least 3/4.
        let [least, found] = [0.75, 1.0 - unexplained].map(|w: f64| w.sqrt().min(1.0).asin());
        return (6.0 / core::f64::consts::PI * (found - least)).max(0.0);
    }
    let (value, mean, deviation) = if count <= 11.0 {
        // With four values, `1 - w` cannot reach the limit; with more, the limit is larger.
        let limit = 0.459 * count - 2.273;
        (
            -(limit - unexplained.ln()).ln(),
            polynomial(count, &FEW_MEAN),
            polynomial(count, &FEW_DEVIATION).exp(),
        )
    } else {
        (
            unexplained.ln(),
            polynomial(log, &MANY_MEAN),
            polynomial(log, &MANY_DEVIATION).exp(),
        )
    };
    normal_above((value - mean) / deviation)
}

const OUTERMOST: [f64; 6] = [0.0, 0.221_157, -0.147_981, -2.071_19, 4.434_685, -2.706_056];
const NEXT: [f64; 6] = [
    0.0, 0.042_981, -0.293_762, -1.752_461, 5.682_633, -3.582_633,
];
const FEW_MEAN: [f64; 4] = [0.544, -0.399_78, 0.025_054, -6.714e-4];
const FEW_DEVIATION: [f64; 4] = [1.382_2, -0.778_57, 0.062_767, -0.002_032_2];
const MANY_MEAN: [f64; 4] = [-1.586_1, -0.310_82, -0.083_751, 0.003_891_5];
const MANY_DEVIATION: [f64; 3] = [-0.480_3, -0.082_676, 0.003_030_2];

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    fn assert_found(mut values: Vec<f64>, w: f64, p: f64) {
        let found = ShapiroWilk::new(&Sample::new(&mut values).unwrap()).unwrap();
        assert!(
            (found.w - w).abs() < 1e-12,
            "of {}: {found:?} is not {w}",
            values.len()
        );
        assert!(
            (found.p - p).abs() <= 1e-9 * p,
            "of {}: {found:?} is not {p}",
            values.len()
        );
    }

    #[test]
    fn w_and_p_are_those_of_r() {
        for pair in golden::PAIRS {
            if let Some((w, p)) = pair.shapiro {
                assert_found(pair.x.to_vec(), w, p);
            }
        }
        for (count, w, p) in golden::SHAPIRO_OF_SQUARES {
            assert_found(
                (1..=*count)
                    .map(|i| ((7_919 * i % 5_003) as f64).powi(2))
                    .collect(),
                *w,
                *p,
            );
        }
        for (count, w, p) in golden::SHAPIRO_OF_NORMAL {
            let count = *count as usize;
            let points = (0..count).map(|place| super::super::qq::plotting_position(place, count));
            assert_found(
                points
                    .map(|share| (1e3 * normal_quantile(share)).round())
                    .collect(),
                *w,
                *p,
            );
        }
    }

    #[test]
    fn samples_that_cannot_be_tested_are_errors() {
        let error = |mut values: Vec<f64>| {
            ShapiroWilk::new(&Sample::new(&mut values).unwrap()).unwrap_err()
        };
        assert_eq!(
            error(vec![1.0, 2.0]),
            StatsError::TooFew {
                needed: 3,
                found: 2
            }
        );
        assert_eq!(
            error(vec![1.0; 5_001]),
            StatsError::TooMany {
                allowed: 5_000,
                found: 5_001
            }
        );
        assert_eq!(error(vec![0.1; 7]), StatsError::NoSpread);
        assert_eq!(error(vec![-1e308, 0.0, 1e308]), StatsError::TooWide);
    }

    #[test]
    fn one_outlier_among_equals_leaves_no_doubt() {
        let mut values = vec![1.0; 4_999];
        values.push(2.0);
        let found = ShapiroWilk::new(&Sample::new(&mut values).unwrap()).unwrap();
        assert!(
            found.w < 0.01 && found.p < 1e-60 && !found.is_normal(1e-9),
            "{found:?}"
        );
    }

    #[test]
    fn perfectly_normal_samples_pass() {
        for count in 3..200 {
            let larger = weights(count);
            let mut values: Vec<f64> = larger
                .iter()
                .map(|weight| -weight)
                .chain(larger.iter().copied())
                .collect();
            values.extend((count % 2 == 1).then_some(0.0));
            let found = ShapiroWilk::new(&Sample::new(&mut values).unwrap()).unwrap();
            assert!(
                found.w > 1.0 - 1e-14 && found.p > 0.999,
                "of {count}: {found:?}"
            );
        }
    }

    #[test]
    fn four_values_leave_little_enough_unexplained() {
        for far in [1.0, 2.0, 1e3, 1e300] {
            let mut values = [0.0, 0.0, 0.0, far];
            let found = ShapiroWilk::new(&Sample::new(&mut values).unwrap()).unwrap();
            assert!(
                (found.w - 0.629_8).abs() < 1e-3 && (found.p - 0.001_2).abs() < 1e-3,
                "{found:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn neither_place_nor_unit_nor_direction_counts(
            values in prop::collection::vec(-1_000_i32..1_000, 3..60), place in -1_000_000_i32..1_000_000,
        ) {
            prop_assume!(values.iter().any(|value| *value != values[0]));
            let test = |to: &dyn Fn(i32) -> f64| {
                let mut values: Vec<f64> = values.iter().map(|value| to(*value)).collect();
                ShapiroWilk::new(&Sample::new(&mut values).unwrap()).unwrap()
            };
            let found = test(&f64::from);
            prop_assert!(found.w > 0.0 && found.w <= 1.0 + 1e-15 && (0.0..=1.0).contains(&found.p), "{:?}", found);
            for other in [test(&|value| f64::from(value + place)), test(&|value| -1e-200 * f64::from(value))] {
                prop_assert!((found.w - other.w).abs() < 1e-12 && (found.p - other.p).abs() < 1e-9, "{:?}", other);
            }
        }

        #[test]
        fn weights_have_the_length_one(count in 3_usize..400) {
            let length = 2.0 * weights(count).iter().map(|weight| weight * weight).sum::<f64>();
            prop_assert!((length - 1.0).abs() < 1e-12);
            prop_assert!(weights(count).windows(2).all(|pair| pair[0] > pair[1]));
        }
    }
}
