//! Parts of the variance: between launches and within launches.

use super::{Sample, StatsError};

/// Parts of the variance of observations in the one-way model with random effects: an observation
/// is the sum of a mean, an effect of its launch, and an effect of its own.
///
/// Figure 3 of Hunold 2016: means of launches differ more than their observations explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VarianceParts {
    /// Number of launches.
    pub launches: usize,
    /// Number of observations in all launches.
    pub observations: usize,
    /// Mean of the means of the launches, with equal weights.
    pub mean: f64,
    /// Mean square between launches; includes a share of the variance within.
    pub between_mean_square: f64,
    /// Mean square within launches.
    pub within_mean_square: f64,
    /// Effective number of observations per launch: that of each launch, if it is the same in all.
    pub typical_observations: f64,
}

impl VarianceParts {
    /// Computes the parts from one sample for each launch.
    ///
    /// # Errors
    /// If there are fewer than two launches, or no launch has two observations.
    pub fn new(launches: &[Sample<'_>]) -> Result<Self, StatsError> {
        let observations: usize = launches.iter().map(Sample::len).sum();
        if launches.len() < 2 {
            return Err(StatsError::TooFewLaunches(launches.len()));
        }
        if observations == launches.len() {
            return Err(StatsError::NoRepetition);
        }
        let (groups, all) = (launches.len() as f64, observations as f64);
        let sum = |term: &dyn Fn(&Sample<'_>) -> f64| launches.iter().map(term).sum::<f64>();
        // Relative to the first mean, so that large numbers do not lose the small differences
        // between them.
        let origin = launches[0].mean();
        let from_origin = |launch: &Sample<'_>| launch.mean() - origin;
        let centre = sum(&|launch| launch.len() as f64 * from_origin(launch)) / all;
        let between = sum(&|launch| launch.len() as f64 * (from_origin(launch) - centre).powi(2));
        let within = sum(&|launch| {
            launch
                .variance()
                .map_or(0.0, |variance| variance * (launch.len() - 1) as f64)
        });
        let squared_sizes = sum(&|launch| (launch.len() as f64).powi(2));
        Ok(Self {
            launches: launches.len(),
            observations,
            mean: origin + sum(&from_origin) / groups,
            between_mean_square: between / (groups - 1.0),
            within_mean_square: within / (all - groups),
            typical_observations: (all - squared_sizes / all) / (groups - 1.0),
        })
    }

    /// Variance between launches; zero if their means differ less than their observations explain.
    pub fn between(&self) -> f64 {
        ((self.between_mean_square - self.within_mean_square) / self.typical_observations).max(0.0)
    }

    /// Variance of the observations of one launch.
    pub fn within(&self) -> f64 {
        self.within_mean_square
    }

    /// Share of the variance between launches, in 0..=1.
    ///
    /// `None` if all observations are the same.
    pub fn between_share(&self) -> Option<f64> {
        let whole = self.between() + self.within();
        (whole > 0.0).then(|| self.between() / whole)
    }
}

#[cfg(test)]
mod tests {
    use super::super::launches_needed::launches_for;
    use super::super::{Confidence, golden};
    use super::*;
    use proptest::prelude::*;

    fn parts_of(groups: &mut [Vec<f64>]) -> Result<VarianceParts, StatsError> {
        let samples: Vec<Sample<'_>> = groups
            .iter_mut()
            .map(|group| Sample::new(group).unwrap())
            .collect();
        VarianceParts::new(&samples)
    }

    #[test]
    fn mean_squares_and_plans_are_those_of_r() {
        for golden::LaunchesCase {
            groups,
            mean_squares: (between, within),
            needed,
        } in golden::LAUNCHES
        {
            let mut groups: Vec<Vec<f64>> = groups.iter().map(|group| group.to_vec()).collect();
            let found = parts_of(&mut groups).unwrap();
            assert!(
                (found.between_mean_square / between - 1.0).abs() < 1e-10,
                "{found:?}"
            );
            assert!(
                (found.within_mean_square / within - 1.0).abs() < 1e-10,
                "{found:?}"
            );
            // With ten observations each, by the variance of these launches.
            let deviation = (found.between() + found.within() / 10.0).sqrt();
            let reach = 0.01 * found.mean.abs();
            assert_eq!(
                launches_for(deviation, reach, Confidence::USUAL),
                Some(*needed)
            );
        }
    }

    #[test]
    fn parts_by_hand() {
        // Means 2 and 5; squares within 2 and 2, between 6 times 1.5^2.
        let found = parts_of(&mut [vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]]).unwrap();
        assert_eq!(
            (found.launches, found.observations, found.mean),
            (2, 6, 3.5)
        );
        assert_eq!(
            (
                found.between_mean_square,
                found.within_mean_square,
                found.typical_observations
            ),
            (13.5, 1.0, 3.0)
        );
        assert_eq!((found.between(), found.within()), (12.5 / 3.0, 1.0));
        assert!((found.between_share().unwrap() - 12.5 / 15.5).abs() < 1e-15);
        let alike = parts_of(&mut [vec![1.0, 5.0], vec![2.0, 4.0]]).unwrap();
        assert_eq!((alike.between(), alike.between_share()), (0.0, Some(0.0)));
        let same = parts_of(&mut [vec![7.0, 7.0], vec![7.0]]).unwrap();
        assert_eq!(same.between_share(), None);
    }

    #[test]
    fn too_few_launches_or_observations_are_errors() {
        assert_eq!(parts_of(&mut []), Err(StatsError::TooFewLaunches(0)));
        assert_eq!(
            parts_of(&mut [vec![1.0, 2.0]]),
            Err(StatsError::TooFewLaunches(1))
        );
        assert_eq!(
            parts_of(&mut [vec![1.0], vec![2.0], vec![4.0]]),
            Err(StatsError::NoRepetition)
        );
    }

    proptest! {
        #[test]
        fn squares_add_up_to_those_around_the_mean_of_all(
            mut groups in prop::collection::vec(prop::collection::vec(0.0..1e3, 2..9), 2..9),
        ) {
            let mut all = groups.concat();
            let found = parts_of(&mut groups).unwrap();
            let between = found.between_mean_square * (found.launches - 1) as f64;
            let within = found.within_mean_square * (found.observations - found.launches) as f64;
            let whole = Sample::new(&mut all).unwrap().variance().unwrap() * (found.observations - 1) as f64;
            prop_assert!(((between + within) / whole - 1.0).abs() < 1e-12);
        }
    }
}
