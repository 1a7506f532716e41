//! Distribution-free confidence intervals of the median.

use super::{Confidence, Interval, Sample};

/// Confidence interval of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
    /// The interval; its ends are values of the sample.
    pub interval: Interval,
    /// Confidence of the interval: at least the wanted one, unless the sample is so small that even
    /// its range has less.
    pub confidence: f64,
}

impl Sample<'_> {
    /// Confidence interval of the median by the sign test: each value is below the median with
    /// probability one half, so that the number of values below it is binomial. `None` for a single
    /// value.
    ///
    /// Valid for any distribution and for small samples: 6 values are enough for 95 %, 8 for 99 %.
    pub fn median_interval(&self, confidence: Confidence) -> Option<MedianInterval> {
        if self.len() < 2 {
            return None;
        }
        let (skipped, beyond) = skip(self.len(), confidence);
        let interval = Interval {
            low: self.sorted[skipped],
            high: self.sorted[self.len() - 1 - skipped],
        };
        Some(MedianInterval {
            interval,
            confidence: (1.0 - 2.0 * beyond).max(0.0),
        })
    }
}

/// Number of values to skip at each end, and the probability beyond one end of the interval.
fn skip(count: usize, confidence: Confidence) -> (usize, f64) {
    // A probability that equals the tail except for rounding is not above it.
    let tail = confidence.tail() * (1.0 + 1e-12);
    let values = count as f64;
    // Values more than 36 standard deviations below the middle have no significant probability.
    let mut skipped = (0.5 * values - 18.0 * values.sqrt()).max(0.0) as usize;
    let mut term = half_binomial(values, skipped as f64);
    let mut beyond = term;
    while 2 * (skipped + 1) < count {
        term *= (count - skipped) as f64 / (skipped + 1) as f64;
        if beyond + term > tail {
            break;
        }
        beyond += term;
        skipped += 1;
    }
    (skipped, beyond)
}

/// Probability of this number of heads in a number of coin throws.
fn half_binomial(throws: f64, heads: f64) -> f64 {
    let log_factorial = |number: f64| libm::lgamma(number + 1.0);
    let ways = log_factorial(throws) - log_factorial(heads) - log_factorial(throws - heads);
    (ways - throws * core::f64::consts::LN_2).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval_of_integers(count: u32, share: f64) -> MedianInterval {
        let mut values: Vec<f64> = (1..=count).map(f64::from).collect();
        Sample::new(&mut values)
            .unwrap()
            .median_interval(Confidence::new(share).unwrap())
            .unwrap()
    }

    /// R: `k <- qbinom(a/2, n, .5); if (pbinom(k, n, .5) > a/2) k <- k - 1`, then `k + 1`, `n - k` and
    /// `1 - 2 * pbinom(k, n, .5)`.
    #[test]
    fn intervals_are_those_of_the_binomial_distribution_of_r() {
        let golden = [
            (6, 0.95, 1.0, 6.0, 0.96875),
            (8, 0.99, 1.0, 8.0, 0.9921875),
            (10, 0.95, 2.0, 9.0, 0.978515625),
            (30, 0.95, 10.0, 21.0, 0.957_226_054_742_932),
            (30, 0.99, 8.0, 23.0, 0.994_777_120_649_815),
            (101, 0.95, 41.0, 61.0, 0.953_955_933_070_657),
            (1_000_000, 0.95, 499_020.0, 500_981.0, 0.950_121_031_347_632),
        ];
        for (count, share, low, high, confidence) in golden {
            let found = interval_of_integers(count, share);
            assert_eq!(
                (found.interval.low, found.interval.high),
                (low, high),
                "{count}, {share}"
            );
            assert!(
                (found.confidence - confidence).abs() < 1e-10,
                "{count}, {share}: {}",
                found.confidence
            );
        }
    }

    /// By counting all sequences, in integers.
    #[test]
    fn no_value_more_could_be_left_out() {
        for count in 2..=120_u32 {
            let mut ways = vec![1_u128];
            for _ in 0..count {
                let next =
                    |i: usize| ways.get(i).unwrap_or(&0) + if i > 0 { ways[i - 1] } else { 0 };
                ways = (0..=ways.len()).map(next).collect();
            }
            let at_most = |heads: usize| {
                ways[..=heads].iter().sum::<u128>() as f64 / 2_f64.powi(count as i32)
            };
            for share in [0.5, 0.75, 0.95, 0.999] {
                let found = interval_of_integers(count, share);
                let skipped = found.interval.low as usize - 1;
                assert_eq!(found.interval.high as usize, count as usize - skipped);
                let confidence = (1.0 - 2.0 * at_most(skipped)).max(0.0);
                assert!(
                    (found.confidence - confidence).abs() < 1e-12,
                    "{count}, {share}: {found:?}"
                );
                assert!(
                    skipped == 0 || confidence >= share - 1e-9,
                    "{count}, {share}: {found:?}"
                );
                assert!(
                    1.0 - 2.0 * at_most(skipped + 1) < share,
                    "{count}, {share}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn few_values_have_less_confidence() {
        assert_eq!(
            Sample::new(&mut [1.0])
                .unwrap()
                .median_interval(Confidence::USUAL),
            None
        );
        assert_eq!(
            interval_of_integers(5, 0.95).interval,
            Interval {
                low: 1.0,
                high: 5.0
            }
        );
        assert!((interval_of_integers(5, 0.95).confidence - 0.9375).abs() < 1e-12);
    }
}
