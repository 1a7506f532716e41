//! Batch means: the standard error of the mean of values that depend on the ones before them.

use super::{Confidence, Interval, StatsError};

/// Mean of values in the order in which they were observed, with an error that allows for their dependence.
///
/// Calls that follow each other share the state of caches, clocks and of the network: 10,000 of them may say as little about the
/// mean as 100 independent ones, and the usual standard error is ten times too small. The values are divided into 32 to 63 batches
/// of adjacent ones (fewer than 64 values are a batch each, and fewer than 30 too few to see if they depend on each other). The variance of the batches' means, increased by their lag-1
/// autocorrelation as for a process of first order, is that of the mean. If the batches still depend on each other so much that
/// this is a guess, or a few of them decide about the mean, there is no error but a reason. Changes that are slower than the whole
/// series cannot be seen in it: they make launches differ.
///
/// Takes constant memory; the length of batches doubles as necessary.
///
/// ```
/// use downbeat_records::stats::{BatchMeans, Confidence, StatsError};
///
/// let mut random = fastrand::Rng::with_seed(1);
/// let mut means = BatchMeans::default();
/// for _ in 0..1_000 {
///     // 20 equal values.
///     means.extend([random.f64(); 20]);
/// }
/// assert!((means.effective()? - 1_000.0).abs() < 500.0);
/// assert!(means.interval(Confidence::USUAL)?.contains(0.5));
/// // A trend has no interval.
/// let trend: BatchMeans = (0..20_000).map(f64::from).collect();
/// assert!(matches!(trend.interval(Confidence::USUAL), Err(StatsError::Dependent { .. })));
/// # Ok::<(), StatsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchMeans {
    /// First value: sums are those of differences from it, which lose no digits of large numbers.
    origin: f64,
    /// Sums of complete batches.
    sums: Vec<f64>,
    /// Number of values per batch.
    length: u64,
    /// Sum of the values of the incomplete batch.
    rest: f64,
    /// Number of values.
    count: u64,
    /// Mean and sum of squared distances from it, by Welford's algorithm.
    mean: f64,
    squares: f64,
}

/// Standard error of a mean, with the degrees of freedom of the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StandardError {
    error: f64,
    freedom: f64,
}

impl Default for BatchMeans {
    fn default() -> Self {
        Self {
            origin: 0.0,
            sums: Vec::new(),
            length: 1,
            rest: 0.0,
            count: 0,
            mean: 0.0,
            squares: 0.0,
        }
    }
}

impl Extend<f64> for BatchMeans {
    fn extend<T: IntoIterator<Item = f64>>(&mut self, values: T) {
        for value in values {
            self.add(value);
        }
    }
}

impl FromIterator<f64> for BatchMeans {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut means = Self::default();
        means.extend(values);
        means
    }
}

impl BatchMeans {
    /// Number of batches at which pairs of them are merged.
    const MOST: usize = 64;

    /// Number of values below which dependence cannot be seen.
    pub const LEAST: usize = 30;

    /// Autocorrelation of batches above which the error would be a guess.
    const DEPENDENT: f64 = 0.4;

    /// Square of the skewness of batches, divided by their number, above which few of them decide about the mean.
    const SKEWED: f64 = 0.15;

    /// Adds the next value.
    pub fn add(&mut self, value: f64) {
        if self.count == 0 {
            self.origin = value;
        }
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
        self.rest += value - self.origin;
        if !self.count.is_multiple_of(self.length) {
            return;
        }
        self.sums.push(self.rest);
        self.rest = 0.0;
        if self.sums.len() == Self::MOST {
            self.sums = self.sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.length *= 2;
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean of all values; 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard error of the mean of independent values; `None` for fewer than two.
    pub fn independent_error(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count >= 2).then(|| (self.squares / (count - 1.0) / count).sqrt())
    }

    /// Confidence interval of the mean of independent values; `None` for fewer than two.
    pub fn independent_interval(&self, confidence: Confidence) -> Option<Interval> {
        let freedom = self.count as f64 - 1.0;
        Some(self.around(self.independent_error()?, confidence.critical_t(freedom)))
    }

    /// Standard error of the mean.
    ///
    /// # Errors
    /// If there are too few values, if they depend on each other over too many, or if few of them decide about the mean.
    pub fn standard_error(&self) -> Result<f64, StatsError> {
        self.estimate().map(|found| found.error)
    }

    /// Confidence interval of the mean.
    ///
    /// # Errors
    /// As of [`standard_error`](Self::standard_error).
    pub fn interval(&self, confidence: Confidence) -> Result<Interval, StatsError> {
        let found = self.estimate()?;
        Ok(self.around(found.error, confidence.critical_t(found.freedom)))
    }

    fn around(&self, error: f64, factor: f64) -> Interval {
        let reach = error * factor;
        Interval {
            low: self.mean - reach,
            high: self.mean + reach,
        }
    }

    /// Number of independent values whose mean would be as uncertain; at most the number of values.
    ///
    /// # Errors
    /// As of [`standard_error`](Self::standard_error).
    pub fn effective(&self) -> Result<f64, StatsError> {
        let dependent = self.standard_error()?;
        let independent = self.independent_error().unwrap_or(0.0);
        let share = if dependent > 0.0 {
            (independent / dependent).powi(2)
        } else {
            1.0
        };
        Ok(share.min(1.0) * self.count as f64)
    }

    fn estimate(&self) -> Result<StandardError, StatsError> {
        let found = self.sums.len();
        let needed = Self::LEAST;
        if found < needed {
            return Err(StatsError::TooFew { needed, found });
        }
        let batches = found as f64;
        let mean = self.sums.iter().sum::<f64>() / batches;
        let distances = || self.sums.iter().map(|sum| sum - mean);
        let moment = |power: i32| {
            distances()
                .map(|distance| distance.powi(power))
                .sum::<f64>()
        };
        let squares = moment(2);
        if !squares.is_finite() || !self.mean.is_finite() {
            return Err(StatsError::TooWide);
        }
        if squares == 0.0 {
            let freedom = batches - 1.0;
            return Ok(StandardError {
                error: 0.0,
                freedom,
            });
        }
        let neighbours = distances().zip(distances().skip(1));
        let correlation = neighbours.map(|(a, b)| a * b).sum::<f64>() / squares;
        // The estimate from few values is too small by about this.
        let correlation = (correlation + 1.0 / batches).max(0.0);
        if correlation > Self::DEPENDENT {
            let length = self.length;
            return Err(StatsError::Dependent {
                length,
                correlation,
            });
        }
        let skewness = moment(3) / squares.powf(1.5) * batches.sqrt();
        if self.length > 1 && skewness * skewness > Self::SKEWED * batches {
            return Err(StatsError::FewDecide);
        }
        let inflation = (1.0 + correlation) / (1.0 - correlation);
        // Of one batch; the mean is that of all values, also of the incomplete batch.
        let variance = squares / (batches - 1.0) / (self.length * self.length) as f64;
        let all = self.count as f64 / self.length as f64;
        Ok(StandardError {
            error: (variance * inflation / all).sqrt(),
            freedom: (batches / inflation - 1.0).max(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;
    use proptest::prelude::*;

    fn means(values: impl IntoIterator<Item = f64>) -> BatchMeans {
        values.into_iter().collect()
    }

    #[test]
    fn few_values_have_no_error() {
        let (needed, found) = (BatchMeans::LEAST, BatchMeans::LEAST - 1);
        let few = means((0..found).map(|i| (i % 3) as f64));
        assert_eq!(
            few.standard_error(),
            Err(StatsError::TooFew { needed, found })
        );
        assert_eq!(means([3.0]).independent_error(), None);
        assert_eq!((means([]).count(), means([]).mean()), (0, 0.0));
    }

    #[test]
    fn equal_values_are_certain() {
        let equal = means([5.0; 1_000]);
        let found = Interval {
            low: 5.0,
            high: 5.0,
        };
        assert_eq!(equal.interval(Confidence::USUAL), Ok(found));
        assert_eq!(equal.effective(), Ok(1_000.0));
    }

    #[test]
    fn values_that_follow_each_other_count_less() {
        // Each value ten times.
        let mut random = fastrand::Rng::with_seed(1);
        let found = means((0..5_000).flat_map(|_| [random.f64(); 10]));
        let effective = found.effective().unwrap();
        assert!((3_000.0..7_500.0).contains(&effective), "{effective}");
        let ratio = found.standard_error().unwrap() / found.independent_error().unwrap();
        assert!((2.5..4.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn trends_outliers_and_infinite_values_have_no_error() {
        let trend = means((0..5_000).map(f64::from)).standard_error();
        assert!(
            matches!(
                trend,
                Err(StatsError::Dependent {
                    length: 64 | 128,
                    ..
                })
            ),
            "{trend:?}"
        );
        let outlier = means((0..5_000).map(|i| if i == 777 { 1e9 } else { f64::from(i % 2) }));
        assert_eq!(outlier.standard_error(), Err(StatsError::FewDecide));
        let infinite = means((0..100).map(|i| if i == 50 { f64::INFINITY } else { 1.0 }));
        assert_eq!(infinite.standard_error(), Err(StatsError::TooWide));
        let not_a_number = means([f64::NAN; 40]);
        assert!(not_a_number.interval(Confidence::USUAL).is_err());
    }

    proptest! {
        #[test]
        fn independent_values_are_those_of_a_sample(values in prop::collection::vec(1.0..1e9, 2..60)) {
            let found = means(values.iter().copied());
            let mut sorted = values;
            let sample = Sample::new(&mut sorted).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs() + 1e-12;
            prop_assert!(close(found.mean(), sample.mean()));
            let error = sample.relative_standard_error().unwrap() * sample.mean();
            prop_assert!(close(found.independent_error().unwrap(), error));
            let interval = found.independent_interval(Confidence::USUAL).unwrap();
            let expected = sample.mean_interval(Confidence::USUAL).unwrap();
            prop_assert!(close(interval.low, expected.low) && close(interval.high, expected.high));
        }

        #[test]
        fn no_series_counts_more_than_its_values(values in prop::collection::vec(0.0..10.0, 0..500)) {
            let found = means(values.iter().copied());
            if let Ok(effective) = found.effective() {
                prop_assert!(effective <= values.len() as f64);
                let interval = found.interval(Confidence::USUAL).unwrap();
                prop_assert!(interval.contains(found.mean()));
            }
        }
    }
}
