//! Comparison of two experiments.

use super::{
    Confidence, HodgesLehmann, Interval, MannWhitney, PValues, Sample, ShapiroWilk, StatsError,
    WelchTest,
};

/// Averages of one experiment: one median and one mean of every launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperimentAverages<'a> {
    /// Medians of the launches.
    pub medians: Sample<'a>,
    /// Means of the launches.
    pub means: Sample<'a>,
}

/// Comparison of two experiments with the same operation and size, as in Hunold 2016.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Number of launches of each experiment.
    pub launches: [usize; 2],
    /// Medians of the medians of the launches.
    pub medians: [f64; 2],
    /// Test of the medians for a difference.
    pub mann_whitney: MannWhitney,
    /// Difference of the medians, first minus second: a significant difference need not be large.
    pub shift: HodgesLehmann,
    /// Test of the means for a difference; valid only if the means are normal.
    pub welch: Result<WelchTest, StatsError>,
    /// Tests of the means of each experiment for normality.
    pub normality: [Result<ShapiroWilk, StatsError>; 2],
}

impl Comparison {
    /// Compares two experiments; `confidence` applies to the interval of the shift.
    #[must_use]
    pub fn new(
        first: &ExperimentAverages<'_>,
        second: &ExperimentAverages<'_>,
        confidence: Confidence,
    ) -> Self {
        let both = [first, second];
        Self {
            launches: both.map(|one| one.medians.len()),
            medians: both.map(|one| one.medians.median()),
            mann_whitney: MannWhitney::new(&first.medians, &second.medians),
            shift: HodgesLehmann::new(&first.medians, &second.medians, confidence),
            welch: WelchTest::new(&first.means, &second.means),
            normality: both.map(|one| ShapiroWilk::new(&one.means)),
        }
    }

    /// Returns true if the t-test is doubtful: at this level, the means of one experiment are not
    /// normal, or they are too few for a test that would show it.
    pub fn means_are_doubtful(&self, level: f64) -> bool {
        const TESTABLE: usize = 10;
        let too_few = self.launches.iter().any(|launches| *launches < TESTABLE);
        too_few
            || !self
                .normality
                .iter()
                .all(|tested| tested.is_ok_and(|tested| tested.is_normal(level)))
    }

    /// The shift relative to the second median; `None` if that is zero.
    pub fn relative_shift(&self) -> Option<f64> {
        let median = self.medians[1].abs();
        (median > 0.0).then(|| self.shift.shift / median)
    }

    /// The interval of the shift relative to the second median; `None` if that is zero.
    pub fn relative_interval(&self) -> Option<Interval> {
        let median = self.medians[1].abs();
        let Interval { low, high } = self.shift.interval;
        (median > 0.0).then(|| Interval {
            low: low / median,
            high: high / median,
        })
    }

    /// Adjusts the p values of several comparisons, usually one for each size.
    pub fn adjusted(comparisons: &[Self]) -> Vec<PValues> {
        let p = comparisons
            .iter()
            .map(|comparison| comparison.mann_whitney.p);
        PValues::adjusted(&p.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::holm;
    use super::*;

    const FAST: [f64; 8] = [10.0, 11.0, 10.5, 12.0, 10.25, 11.5, 11.25, 10.75];
    const TEN: [f64; 10] = [
        10.0, 11.0, 10.5, 12.0, 10.25, 11.5, 11.25, 10.75, 11.1, 10.6,
    ];

    /// Compares medians, with means twice as large.
    fn compare(first: &[f64], second: &[f64]) -> Comparison {
        let twice = |values: &[f64]| values.iter().map(|value| 2.0 * value).collect::<Vec<_>>();
        let (mut medians, mut means) = (
            [first.to_vec(), second.to_vec()],
            [twice(first), twice(second)],
        );
        let [first_medians, second_medians] = medians
            .each_mut()
            .map(|values| Sample::new(values).unwrap());
        let [first_means, second_means] =
            means.each_mut().map(|values| Sample::new(values).unwrap());
        let first = ExperimentAverages {
            medians: first_medians,
            means: first_means,
        };
        Comparison::new(
            &first,
            &ExperimentAverages {
                medians: second_medians,
                means: second_means,
            },
            Confidence::USUAL,
        )
    }

    #[test]
    fn medians_are_ranked_and_shifted_and_means_tested() {
        let slow = FAST.map(|value| value + 4.0);
        let found = compare(&FAST, &slow[..7]);
        assert_eq!((found.launches, found.medians), ([8, 7], [10.875, 15.0]));
        assert_eq!(found.mann_whitney.u, 0.0);
        assert_eq!(found.mann_whitney.p.less, 1.0 / 6_435.0);
        assert!(found.shift.is_evident());
        assert_eq!(found.relative_shift(), Some(found.shift.shift / 15.0));
        let [mut x, mut y] = [
            FAST.map(|value| 2.0 * value).to_vec(),
            slow[..7].iter().map(|v| 2.0 * v).collect(),
        ];
        let (x, y) = (Sample::new(&mut x).unwrap(), Sample::new(&mut y).unwrap());
        assert_eq!(found.welch, WelchTest::new(&x, &y));
        assert_eq!(
            found.normality,
            [ShapiroWilk::new(&x), ShapiroWilk::new(&y)]
        );
    }

    #[test]
    fn a_t_test_is_doubtful_unless_both_means_look_normal() {
        let skewed = [
            10.0, 10.1, 10.2, 10.3, 10.15, 10.05, 10.25, 10.2, 10.1, 90.0,
        ];
        assert!(!compare(&TEN, &TEN).means_are_doubtful(0.05));
        assert!(compare(&TEN, &skewed).means_are_doubtful(0.05));
        assert!(compare(&skewed, &TEN).means_are_doubtful(0.05));
        // The test could not show that eight are not normal.
        assert!(compare(&TEN, &FAST).means_are_doubtful(0.05));
        let too_few = compare(&FAST, &FAST[..2]);
        assert_eq!(
            too_few.normality[1],
            Err(StatsError::TooFew {
                needed: 3,
                found: 2
            })
        );
        assert!(too_few.means_are_doubtful(0.05));
        assert_eq!(
            compare(&FAST, &[1.0]).welch,
            Err(StatsError::TooFew {
                needed: 2,
                found: 1
            })
        );
        assert_eq!(compare(&FAST, &[0.0]).relative_shift(), None);
    }

    #[test]
    fn each_alternative_is_adjusted_over_all_sizes() {
        let comparisons = [0.0, 0.5, 4.0].map(|by| compare(&FAST, &FAST.map(|value| value + by)));
        let found = Comparison::adjusted(&comparisons);
        let side = |select: fn(&PValues) -> f64| {
            let expected = holm(&comparisons.map(|comparison| select(&comparison.mann_whitney.p)));
            assert_eq!(found.iter().map(select).collect::<Vec<_>>(), expected);
        };
        side(|p| p.two_sided);
        side(|p| p.less);
        side(|p| p.greater);
        assert_eq!(found[2].less, 3.0 * comparisons[2].mann_whitney.p.less);
        assert!(Comparison::adjusted(&[]).is_empty());
    }
}
