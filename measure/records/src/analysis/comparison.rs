//! Two experiments compared, group by group: section 5.2 of the 2016 paper.

use super::experiment::Analysis;
use super::factors::{FactorDifference, factor_differences};
use super::group::{Average, GroupAnalysis};
use crate::GroupKey;
use crate::stats::{Comparison, Confidence, ExperimentAverages, PValues};

/// What can be said of two experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentComparison {
    /// Which average of the launches was compared. The t-test is of their means, unless this is what was reported.
    pub average: Average,
    /// In what the experiments differ; if in nothing, a difference is chance, or something that was not recorded.
    pub factors: Vec<FactorDifference>,
    /// The groups that both have, by operation, size and ranks.
    pub groups: Vec<ComparedGroup>,
    /// The groups that the first has no averages of, though the second measured them; and the other way round.
    pub missing: [Vec<GroupKey>; 2],
}

/// What can be said of one group in two experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedGroup {
    /// What was measured.
    pub key: GroupKey,
    /// The tests.
    pub comparison: Comparison,
    /// The p values of Wilcoxon's test, adjusted by Holm over all groups.
    pub adjusted: PValues,
}

impl ExperimentComparison {
    /// Compares two experiments; the confidence is that of the shifts' intervals.
    pub fn new(
        first: &Analysis,
        second: &Analysis,
        average: Average,
        confidence: Confidence,
    ) -> Self {
        let mut keys: Vec<&GroupKey> = [first, second]
            .iter()
            .flat_map(|one| &one.groups)
            .map(|group| &group.key)
            .collect();
        keys.sort_unstable();
        keys.dedup();
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

/// Both averages of a group; where only one of them is asked for, it stands for both.
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

    /// All of the first's medians are below all of the second's: one order in 20.
    #[test]
    fn medians_of_launches_are_ranked_and_means_are_tested() {
        let first = experiment(&[&[1.0, 1.0, 4.0], &[2.0, 2.0, 5.0], &[3.0, 3.0, 6.0]]);
        let second = experiment(&[&[4.0], &[5.5], &[6.0]]);
        let found = compare(&first, &second, Average::Median);
        assert_eq!((found.groups.len(), &found.missing), (1, &[vec![], vec![]]));
        let ComparedGroup {
            key: of,
            comparison,
            adjusted,
        } = &found.groups[0];
        assert_eq!(
            (of, comparison.medians, comparison.launches),
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
        let of_means = compare(&first, &second, Average::Mean);
        assert_eq!(
            (
                of_means.groups[0].comparison.mann_whitney.u,
                of_means.groups[0].comparison.medians[0]
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
    fn what_only_one_has_is_said_and_the_others_are_adjusted_together() {
        let of = |nanos: f64, sizes: &[u64]| {
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
        let mut second = of(20.0, &[4, 8, 32]);
        second
            .iter_mut()
            .for_each(|(_, launch)| launch.factors = launch.factors.clone().with("mpi", &"B"));
        let found = compare(&of(10.0, &[4, 8, 16]), &second, Average::Median);
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
        // One without a valid observation is missing, too.
        let mut invalid = of(10.0, &[8]);
        invalid
            .iter_mut()
            .for_each(|(_, launch)| launch.groups[0].nanos.clear());
        assert_eq!(
            compare(&invalid, &of(1.0, &[8]), Average::Median).missing,
            [vec![key(8)], vec![]]
        );
    }
}
