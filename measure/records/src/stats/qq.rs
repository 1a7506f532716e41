//! Points of a normal Q-Q plot: close to a straight line if the values are normal.

use super::Sample;
use super::normal::normal_quantile;

impl Sample<'_> {
    /// Pairs of a quantile of the standard normal distribution and a value, ascending, with the
    /// plotting positions of R's `qqnorm`.
    pub fn normal_points(&self) -> impl ExactSizeIterator<Item = (f64, f64)> {
        let count = self.len();
        let expected = move |place| normal_quantile(plotting_position(place, count));
        self.values()
            .iter()
            .enumerate()
            .map(move |(place, value)| (expected(place), *value))
    }
}

/// Expected share of a distribution below the value at this index of a sorted sample.
pub(super) fn plotting_position(place: usize, count: usize) -> f64 {
    // Blom's positions for small samples, Hazen's for large ones.
    let skipped = if count <= 10 { 0.375 } else { 0.5 };
    (place as f64 + 1.0 - skipped) / (count as f64 + 1.0 - 2.0 * skipped)
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;

    #[test]
    fn theoretical_quantiles_are_those_of_r_and_the_others_the_values() {
        for expected in golden::QQ {
            let mut values: Vec<f64> = (0..expected.len()).rev().map(|i| i as f64 * 7.0).collect();
            let sample = Sample::new(&mut values).unwrap();
            assert_eq!(sample.normal_points().len(), expected.len());
            for (place, ((theory, value), expected)) in
                sample.normal_points().zip(*expected).enumerate()
            {
                assert!(
                    (theory - expected).abs() < 1e-14,
                    "{theory} is not {expected}"
                );
                assert_eq!(value, place as f64 * 7.0);
            }
        }
    }
}
