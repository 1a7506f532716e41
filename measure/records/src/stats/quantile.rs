//! Quantiles by R's type 7: linear interpolation of order statistics, the default of R, NumPy and
//! Julia.

use super::Sample;

impl Sample<'_> {
    /// Quantile of this share, which is clamped to 0..=1.
    pub fn quantile(&self, share: f64) -> f64 {
        let place = share.clamp(0.0, 1.0) * (self.len() - 1) as f64;
        let below = self.sorted[place as usize];
        let above = self.sorted[(place as usize + 1).min(self.len() - 1)];
        below + (above - below) * place.fract()
    }

    /// The middle value, or the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From Python's `statistics.quantiles(data, n=8, method="inclusive")`, printed by
    /// `tests/golden/quantiles.py`.
    #[test]
    fn quantiles_are_those_of_python() {
        let golden: [(&[f64], [f64; 7]); 3] = [
            (
                &[3.0, 1.0, 2.0, 5.0],
                [1.375, 1.75, 2.125, 2.5, 2.875, 3.5, 4.25],
            ),
            (
                &[10.5, -2.0, 7.25, 7.25, 0.0, 100.0],
                [-0.75, 1.8125, 6.34375, 7.25, 7.65625, 9.6875, 44.0625],
            ),
            (
                &[2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0],
                [4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0],
            ),
        ];
        for (data, quantiles) in golden {
            let mut data = data.to_vec();
            let sample = Sample::new(&mut data).unwrap();
            for (i, expected) in quantiles.into_iter().enumerate() {
                let found = sample.quantile((i + 1) as f64 / 8.0);
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{found} is not {expected}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn quantiles_grow_from_the_least_to_the_greatest(mut data in prop::collection::vec(-1e9..1e9, 1..50)) {
            let sample = Sample::new(&mut data).unwrap();
            let quantiles: Vec<f64> = (0..=100).map(|percent| sample.quantile(f64::from(percent) / 100.0)).collect();
            prop_assert!(quantiles.windows(2).all(|pair| pair[0] <= pair[1] + 1e-6));
            prop_assert_eq!(quantiles.first(), sample.values().first());
            prop_assert_eq!(quantiles.last(), sample.values().last());
        }
    }
}
