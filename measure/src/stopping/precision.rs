//! Running precision of the mean run-time.

use downbeat_records::stats::Confidence;

/// Number, mean and sum of squared distances from the mean, by Welford's algorithm (1962), which reads each value once.
#[derive(Clone, Debug, Default)]
pub(super) struct Precision {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Precision {
    pub(super) fn add(&mut self, values: &[f64]) {
        for value in values {
            self.count += 1;
            let distance = value - self.mean;
            self.mean += distance / self.count as f64;
            self.squares += distance * (value - self.mean);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the standard error as a share of the mean; `None` for fewer than two values, or a mean of zero.
    pub(super) fn relative_error(&self) -> Option<f64> {
        let count = self.count as f64;
        let known = self.count >= 2 && self.mean != 0.0;
        known.then(|| (self.squares / (count - 1.0) / count).sqrt() / self.mean.abs())
    }

    /// Returns the half-width of the mean's confidence interval as a share of the mean; `None` as above.
    pub(super) fn relative_reach(&self, confidence: Confidence) -> Option<f64> {
        let error = self.relative_error()?;
        Some(error * confidence.critical_t((self.count - 1) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_records::stats::Sample;
    use proptest::prelude::*;

    #[test]
    fn few_values_have_no_relative_error() {
        let mut precision = Precision::default();
        assert_eq!((precision.count(), precision.relative_error()), (0, None));
        precision.add(&[3.0]);
        assert_eq!((precision.count(), precision.relative_error()), (1, None));
        precision.add(&[-3.0]);
        assert_eq!(
            (
                precision.relative_error(),
                precision.relative_reach(Confidence::USUAL)
            ),
            (None, None)
        );
        precision.add(&[f64::NAN]);
        assert!(precision.relative_error().unwrap().is_nan());
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_sample(values in prop::collection::vec(1.0..1e9, 2..60), cut in 0_usize..60) {
            let (one, two) = values.split_at(cut.min(values.len()));
            let mut precision = Precision::default();
            precision.add(one);
            precision.add(two);
            let mut sorted = values.clone();
            let sample = Sample::new(&mut sorted).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs() + 1e-12;
            let error = sample.relative_standard_error().unwrap();
            prop_assert!(close(precision.relative_error().unwrap(), error));
            let reach = sample.mean_interval(Confidence::USUAL).unwrap().half_width() / sample.mean();
            prop_assert!(close(precision.relative_reach(Confidence::USUAL).unwrap(), reach));
        }
    }
}
