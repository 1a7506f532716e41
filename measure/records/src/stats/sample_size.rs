//! Number of observations until their mean is normal.

use fastrand::Rng;

use super::{Sample, ShapiroWilk, StatsError};

/// Search for the number of observations from which on means are normal: section 4.1 of the 2016
/// paper.
///
/// For each size, random samples of that size are drawn from the observations with replacement, and
/// their means are tested for normality with the test of Shapiro and Wilk. The 30 observations of
/// textbooks are often not enough.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct SampleSizeCheck {
    /// Sizes to try.
    pub sizes: Vec<usize>,
    /// Number of means of each size, 3 to 5,000: more means reveal smaller deviations.
    pub means: usize,
    /// Level of the test: also the probability of rejecting normal means.
    pub level: f64,
    /// Random seed. The samples of a size do not depend on the other sizes.
    pub seed: u64,
}

impl SampleSizeCheck {
    /// Settings of Hunold 2016: 500 means of each of 10, 20, ... 500 observations.
    #[must_use]
    pub fn as_published(seed: u64) -> Self {
        Self {
            sizes: (1..=50).map(|tens| 10 * tens).collect(),
            means: 500,
            level: 0.05,
            seed,
        }
    }

    /// Draws and tests the means of each size.
    ///
    /// # Errors
    /// If there are too few or too many means for the test, or all are the same.
    pub fn run(&self, observations: &Sample<'_>) -> Result<Vec<MeansOfSize>, StatsError> {
        self.sizes
            .iter()
            .map(|size| self.run_size(*size, observations))
            .collect()
    }

    /// The smallest size whose means pass the test, as those of all larger sizes do; `None` if there is none.
    ///
    /// A single size can pass by chance. But of many sizes some also fail by chance: larger ones pass unless their p-value is below
    /// the level divided by the number of sizes.
    ///
    /// # Errors
    /// As of [`run`](Self::run); sizes below one that fails are not tried.
    pub fn smallest(&self, observations: &Sample<'_>) -> Result<Option<MeansOfSize>, StatsError> {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        sizes.dedup();
        let level_of_larger = self.level / sizes.len().max(1) as f64;
        let mut smallest = None;
        for size in sizes.into_iter().rev() {
            let tested = self.run_size(size, observations)?;
            if !tested.normality.is_normal(level_of_larger) {
                break;
            }
            if tested.normality.is_normal(self.level) {
                smallest = Some(tested);
            }
        }
        Ok(smallest)
    }

    fn run_size(&self, size: usize, observations: &Sample<'_>) -> Result<MeansOfSize, StatsError> {
        if size == 0 {
            return Err(StatsError::TooFew {
                needed: 1,
                found: 0,
            });
        }
        let mut random = Rng::with_seed(self.seed ^ (size as u64).rotate_left(32));
        let values = observations.values();
        // Relative to the median, so that large numbers do not lose the small differences between
        // them.
        let origin = observations.median();
        let mut mean = || {
            let drawn = (0..size).map(|_| values[random.usize(..values.len())] - origin);
            origin + drawn.sum::<f64>() / size as f64
        };
        let mut means: Vec<f64> = (0..self.means).map(|_| mean()).collect();
        means.sort_unstable_by(f64::total_cmp);
        if means.is_empty() {
            return Err(StatsError::TooFew {
                needed: 3,
                found: 0,
            });
        }
        let normality = ShapiroWilk::new(&Sample { sorted: &means })?;
        Ok(MeansOfSize {
            size,
            means,
            normality,
        })
    }
}

/// Means of random samples of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct MeansOfSize {
    size: usize,
    means: Vec<f64>,
    normality: ShapiroWilk,
}

impl MeansOfSize {
    /// Number of observations in each mean.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The means; [`Sample::normal_points`] of them is the Q-Q plot of Hunold 2016.
    pub fn means(&self) -> Sample<'_> {
        Sample {
            sorted: &self.means,
        }
    }

    /// Result of the test for normality.
    pub fn normality(&self) -> ShapiroWilk {
        self.normality
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run-times with a second peak and a long tail.
    fn skewed() -> Vec<f64> {
        (0..2_000_u32)
            .map(|i| 400.0 + f64::from(i % 7) + if i % 50 == 0 { 300.0 } else { 0.0 })
            .collect()
    }

    fn check(sizes: &[usize]) -> SampleSizeCheck {
        SampleSizeCheck {
            sizes: sizes.to_vec(),
            means: 500,
            level: 0.05,
            seed: 1,
        }
    }

    #[test]
    fn skewed_observations_need_more_of_them_than_a_textbook_says() {
        let mut values = skewed();
        let sample = Sample::new(&mut values).unwrap();
        let tested = check(&[30, 20_000]).run(&sample).unwrap();
        assert!(
            !tested[0].normality().is_normal(1e-6),
            "{:?}",
            tested[0].normality()
        );
        assert!(
            tested[1].normality().is_normal(0.001),
            "{:?}",
            tested[1].normality()
        );
        // Evenly distributed values need few.
        let mut values: Vec<f64> = (0..2_000).map(f64::from).collect();
        let even = check(&[30])
            .run(&Sample::new(&mut values).unwrap())
            .unwrap();
        assert!(
            even[0].normality().is_normal(0.001),
            "{:?}",
            even[0].normality()
        );
    }

    #[test]
    fn the_smallest_passes_with_all_that_are_larger() {
        let mut values = skewed();
        let sample = Sample::new(&mut values).unwrap();
        let smallest = |sizes: &[usize], seed| {
            let check = SampleSizeCheck {
                seed,
                ..check(sizes)
            };
            check.smallest(&sample).unwrap().map(|tested| tested.size())
        };
        let sizes = [20_000, 30, 5_000, 100, 1_000];
        let seeds = if std::env::var_os("DOWNBEAT_LONG").is_some() {
            10
        } else {
            3
        };
        for seed in 1..=seeds {
            let found = smallest(&sizes, seed);
            assert!(found >= Some(1_000), "seed {seed}: {found:?}");
        }
        // Neither is enough.
        assert_eq!(smallest(&[30, 100], 1), None);
        let check = check(&sizes);
        let none = SampleSizeCheck {
            level: 1.1,
            ..check
        };
        assert_eq!(none.smallest(&sample).unwrap(), None);
    }

    #[test]
    fn means_are_those_of_the_observations() {
        let mut values = skewed();
        let sample = Sample::new(&mut values).unwrap();
        let tested = check(&[100]).run(&sample).unwrap().remove(0);
        let (error, expected) = (sample.standard_deviation().unwrap() / 10.0, sample.mean());
        assert_eq!((tested.size(), tested.means().len()), (100, 500));
        assert!((tested.means().mean() - expected).abs() < 4.0 * error / 500_f64.sqrt());
        let ratio = tested.means().standard_deviation().unwrap() / error;
        assert!((0.85..1.15).contains(&ratio), "{ratio}");
    }

    #[test]
    fn means_of_one_are_observations_and_those_of_two_are_drawn_apart() {
        let mut values = skewed();
        let sample = Sample::new(&mut values).unwrap();
        let last_result = |size, means| {
            SampleSizeCheck {
                means,
                ..check(&[size])
            }
            .run(&sample)
            .unwrap()
            .remove(0)
        };
        let (ones, twos) = (last_result(1, 1_000), last_result(2, 500));
        assert!(
            ones.means()
                .values()
                .iter()
                .all(|mean| sample.values().contains(mean))
        );
        // With one random stream for all sizes, pairs of the former would be the latter.
        assert!((ones.means().mean() - twos.means().mean()).abs() > 1e-6);
    }

    #[test]
    fn a_seed_draws_the_same_samples_whatever_else_is_tried() {
        let mut values = skewed();
        let sample = Sample::new(&mut values).unwrap();
        let last_result = |check: SampleSizeCheck| check.run(&sample).unwrap().pop().unwrap();
        assert_eq!(last_result(check(&[10, 40])), last_result(check(&[40])));
        let other = SampleSizeCheck {
            seed: 2,
            ..check(&[40])
        };
        assert_ne!(last_result(other), last_result(check(&[40])));
        let published = SampleSizeCheck::as_published(1);
        assert_eq!(
            (
                published.sizes.len(),
                published.sizes[0],
                published.sizes[49]
            ),
            (50, 10, 500)
        );
        let other_size = check(&[41]);
        assert_ne!(
            last_result(other_size).means().values(),
            last_result(check(&[40])).means().values()
        );
    }

    #[test]
    fn invalid_settings_are_errors() {
        let error = |check: SampleSizeCheck, mut values: Vec<f64>| {
            check.run(&Sample::new(&mut values).unwrap()).unwrap_err()
        };
        assert_eq!(
            error(check(&[0]), skewed()),
            StatsError::TooFew {
                needed: 1,
                found: 0
            }
        );
        assert_eq!(error(check(&[10]), vec![5.0; 9]), StatsError::NoSpread);
        let means = |means| SampleSizeCheck {
            means,
            ..check(&[10])
        };
        assert_eq!(
            error(means(0), skewed()),
            StatsError::TooFew {
                needed: 3,
                found: 0
            }
        );
        assert_eq!(
            error(means(2), skewed()),
            StatsError::TooFew {
                needed: 3,
                found: 2
            }
        );
        assert_eq!(
            error(means(5_001), skewed()),
            StatsError::TooMany {
                allowed: 5_000,
                found: 5_001
            }
        );
    }
}
