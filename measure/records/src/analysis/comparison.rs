//! Comparison of two experiments, group by group: section 5.2 of Hunold 2016.

use super::experiment::Analysis;
use super::factors::{FactorDifference, factor_differences};
use super::group::{Average, GroupAnalysis};
use crate::GroupKey;
use crate::stats::{Comparison, Confidence, ExperimentAverages, PValues};

/// Comparison of two experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentComparison {
    /// Average of the launches that was compared. The t-test compares their means, unless this is
    /// [`Average::Reported`].
    pub average: Average,
    /// Factors that differ. If there are none, a difference is chance, or comes from something that
    /// was not recorded.
    pub factors: Vec<FactorDifference>,
    /// Groups of both experiments, by operation, size and ranks.
    pub groups: Vec<ComparedGroup>,
    /// Groups without averages in the first experiment, and in the second.
    pub missing: [Vec<GroupKey>; 2],
}

/// Comparison of one group in two experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedGroup {
    /// Key of the group.
    pub key: GroupKey,
    /// Results of the tests.
    pub comparison: Comparison,
    /// p values of Wilcoxon's test, adjusted by Holm's method over all groups.
    pub adjusted: PValues,
}

impl ExperimentComparison {
    /// Compares two experiments; `confidence` applies to the intervals of the shifts.
    pub fn new(
        first: &Analysis,
        second: &Analysis,
        average: Average,
        confidence: Confidence,
    ) -> Self {
        let groups = [first, second].into_iter().flat_map(|one| &one.groups);
        let keys = GroupKey::distinct(groups.map(|group| &group.key));
        let (mut compared, mut missing) = (Vec::new(), [Vec::new(), Vec::new()]);
        for key in keys {
            let found = [first, second]
                .map(|one| one.group(key).and_then(|group| averages(group, average)));
            if let [Some(first), Some(second)] = &found {
                compared.push((key.clone(), Comparison::new(first, second, confidence)));
            }
            for (missing, found) in missing.iter_mut().zip(&found) {
                if found.is_none() {
                    missing.push(key.clone());
                }
            }
        }
        let comparisons: Vec<Comparison> =
            compared.iter().map(|(_, comparison)| *comparison).collect();
        let groups = compared.into_iter().zip(Comparison::adjusted(&comparisons));
        Self {
            average,
            factors: factor_differences(&first.factors, &second.factors),
            groups: groups
                .map(|((key, comparison), adjusted)| ComparedGroup {
                    key,
                    comparison,
                    adjusted,
                })
                .collect(),
            missing,
        }
    }
}

/// Medians and means of a group; [`Average::Reported`] stands for both.
fn averages(group: &GroupAnalysis, average: Average) -> Option<ExperimentAverages<'_>> {
    let means = if average == Average::Reported {
        Average::Reported
    } else {
        Average::Mean
    };
    Some(ExperimentAverages {
        medians: group.averages(average)?,
        means: group.averages(means)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::AnalysisSettings;
    use super::super::examples::{experiment, group, key, launch};
    use super::*;
    use crate::Launch;
    use crate::stats::{Sample, WelchTest};

    fn analyse(launches: &[(String, Launch)]) -> Analysis {
        Analysis::new(launches, &AnalysisSettings::default()).unwrap()
    }

    fn compare(
        first: &[(String, Launch)],
        second: &[(String, Launch)],
        average: Average,
    ) -> ExperimentComparison {
        ExperimentComparison::new(
            &analyse(first),
            &analyse(second),
            average,
            Confidence::USUAL,
        )
    }

    /// All medians of the first are below all of the second: one order of 20.
    #[test]
    fn medians_of_launches_are_ranked_and_means_are_tested() {
        let first = experiment(&[&[1.0, 1.0, 4.0], &[2.0, 2.0, 5.0], &[3.0, 3.0, 6.0]]);
        let second = experiment(&[&[4.0], &[5.5], &[6.0]]);
        let found = compare(&first, &second, Average::Median);
        assert_eq!((found.groups.len(), &found.missing), (1, &[vec![], vec![]]));
        let ComparedGroup {
            key: found_key,
            comparison,
            adjusted,
        } = &found.groups[0];
        assert_eq!(
            (found_key, comparison.medians, comparison.launches),
            (&key(8), [2.0, 5.5], [3, 3])
        );
        assert_eq!(
            (comparison.mann_whitney.p.less, adjusted.less),
            (0.05, 0.05)
        );
        let (mut means, mut others) = ([2.0, 3.0, 4.0], [4.0, 5.5, 6.0]);
        let welch = WelchTest::new(
            &Sample::new(&mut means).unwrap(),
            &Sample::new(&mut others).unwrap(),
        );
        assert_eq!(comparison.welch, welch);
        // Means of 2, 3 and 4 against 4, 5.5 and 6: one tie.
        let mean_comparison = compare(&first, &second, Average::Mean);
        assert_eq!(
            (
                mean_comparison.groups[0].comparison.mann_whitney.u,
                mean_comparison.groups[0].comparison.medians[0]
            ),
            (0.5, 3.0)
        );
        assert!(
            compare(&first, &second, Average::Reported)
                .groups
                .is_empty()
        );
    }

    #[test]
    fn missing_groups_are_listed_and_common_ones_adjusted_together() {
        let launches_from = |nanos: f64, sizes: &[u64]| {
            let launches = (0..4).map(|i| f64::from(i) + nanos).enumerate();
            let groups = |nanos| {
                sizes
                    .iter()
                    .map(|bytes| group(*bytes, &[nanos]))
                    .collect::<Vec<_>>()
            };
            launches
                .map(|(i, nanos)| launch(&i.to_string(), &groups(nanos)))
                .collect::<Vec<_>>()
        };
        let mut second = launches_from(20.0, &[4, 8, 32]);
        second
            .iter_mut()
            .for_each(|(_, launch)| launch.factors = launch.factors.clone().with("mpi", &"B"));
        let found = compare(&launches_from(10.0, &[4, 8, 16]), &second, Average::Median);
        assert_eq!(
            found
                .groups
                .iter()
                .map(|group| group.key.bytes)
                .collect::<Vec<_>>(),
            [4, 8]
        );
        assert_eq!(found.missing, [vec![key(32)], vec![key(16)]]);
        assert_eq!(
            found
                .factors
                .iter()
                .map(|factor| factor.name.as_str())
                .collect::<Vec<_>>(),
            ["mpi"]
        );
        for group in &found.groups {
            assert_eq!(
                (group.comparison.mann_whitney.p.less, group.adjusted.less),
                (1.0 / 70.0, 2.0 / 70.0)
            );
        }
        // A group without a valid observation is missing, too.
        let mut invalid = launches_from(10.0, &[8]);
        invalid
            .iter_mut()
            .for_each(|(_, launch)| launch.groups[0].nanos.clear());
        assert_eq!(
            compare(&invalid, &launches_from(1.0, &[8]), Average::Median).missing,
            [vec![key(8)], vec![]]
        );
    }
}
