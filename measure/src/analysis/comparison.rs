//! Two experiments compared, group by group: section 5.2 of the 2016 paper.

use super::{Analysis, Average, FactorDifference, GroupAnalysis, factor_differences};
use crate::{Averages, Comparison, Confidence, GroupKey, PValues};

/// What can be said of two experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentComparison {
    /// Which average of the launches was compared. The t-test is of their means, unless this is what was reported.
    pub of: Average,
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
    pub fn of(first: &Analysis, second: &Analysis, of: Average, confidence: Confidence) -> Self {
        let mut keys: Vec<&GroupKey> =
            [first, second].iter().flat_map(|one| &one.groups).map(|group| &group.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut compared, mut missing) = (Vec::new(), [Vec::new(), Vec::new()]);
        for key in keys {
            let found = [first, second].map(|one| one.group(key).and_then(|group| averages(group, of)));
            if let [Some(first), Some(second)] = &found {
                compared.push((key.clone(), Comparison::of(first, second, confidence)));
            }
            for (missing, found) in missing.iter_mut().zip(&found) {
                if found.is_none() {
                    missing.push(key.clone());
                }
            }
        }
        let comparisons: Vec<Comparison> = compared.iter().map(|(_, comparison)| *comparison).collect();
        let groups = compared.into_iter().zip(Comparison::adjusted(&comparisons));
        Self {
            of,
            factors: factor_differences(&first.factors, &second.factors),
            groups: groups.map(|((key, comparison), adjusted)| ComparedGroup { key, comparison, adjusted }).collect(),
            missing,
        }
    }
}

/// Both averages of a group; where only one of them is asked for, it stands for both.
fn averages(group: &GroupAnalysis, of: Average) -> Option<Averages<'_>> {
    let means = if of == Average::Reported { Average::Reported } else { Average::Mean };
    Some(Averages { medians: group.averages(of)?, means: group.averages(means)? })
}
