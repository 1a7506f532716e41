//! Tukey's filter: values further from the quartiles than 1.5 times the interquartile range are
//! outliers.

use super::Sample;

impl<'a> Sample<'a> {
    /// The values within `[Q1 - 1.5 IQR, Q3 + 1.5 IQR]`, ends included, or within `step` of the quartiles if that is
    /// further: where most values are equal, those by a coarse clock that shows one step more are none the less no outliers.
    ///
    /// Never empty: the quartiles lie between values that are kept.
    #[must_use]
    pub fn without_outliers(&self, step: f64) -> Sample<'a> {
        let (first, third) = (self.quantile(0.25), self.quantile(0.75));
        let reach = (1.5 * (third - first)).max(step);
        let begin = self.sorted.partition_point(|value| *value < first - reach);
        let end = self.sorted.partition_point(|value| *value <= third + reach);
        Sample {
            sorted: &self.sorted[begin..end],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fence_includes_its_ends() {
        // Quartiles 2 and 4, so the fence reaches from -1 to 7.
        let mut data = [-1.0, 2.0, 3.0, 4.0, 7.0];
        assert_eq!(
            Sample::new(&mut data).unwrap().without_outliers(0.0).len(),
            5
        );
        let mut data = [-1.1, 2.0, 3.0, 4.0, 7.0];
        assert_eq!(
            Sample::new(&mut data)
                .unwrap()
                .without_outliers(0.0)
                .values(),
            [2.0, 3.0, 4.0, 7.0]
        );
        let mut data = [-1.0, 2.0, 3.0, 4.0, 7.1];
        assert_eq!(
            Sample::new(&mut data)
                .unwrap()
                .without_outliers(0.0)
                .values(),
            [-1.0, 2.0, 3.0, 4.0]
        );
    }

    /// A clock in steps of 10 ns shows 80 or 90 ns.
    #[test]
    fn the_next_step_of_the_clock_is_no_outlier() {
        let mut data = [vec![80.0; 800], vec![90.0; 200], vec![500.0]].concat();
        let sample = Sample::new(&mut data).unwrap();
        assert_eq!(sample.without_outliers(0.0).len(), 800);
        assert_eq!(sample.without_outliers(10.0).len(), 1_000);
    }

    proptest! {
        #[test]
        fn a_value_is_kept_if_and_only_if_it_is_inside(mut data in prop::collection::vec(-1e3..1e3, 1..60)) {
            let sample = Sample::new(&mut data).unwrap();
            let (first, third) = (sample.quantile(0.25), sample.quantile(0.75));
            let (low, high) = (first - 1.5 * (third - first), third + 1.5 * (third - first));
            let expected: Vec<f64> = sample.values().iter().copied().filter(|v| (low..=high).contains(v)).collect();
            prop_assert!(!expected.is_empty());
            prop_assert_eq!(sample.without_outliers(0.0).values(), &expected[..]);
        }

        #[test]
        fn the_mean_of_large_numbers_keeps_its_small_part(mut data in prop::collection::vec(0_u32..1_000, 1..60)) {
            let exact = data.iter().copied().map(f64::from).sum::<f64>() / data.len() as f64;
            let mut shifted: Vec<f64> = data.drain(..).map(|value| f64::from(value) + 1e15).collect();
            prop_assert!((Sample::new(&mut shifted).unwrap().mean() - 1e15 - exact).abs() <= 0.125);
        }
    }
}
