//! Comparison of two experiments within equal states of the machine.

use super::experiment::Analysis;
use super::group::Average;
use crate::GroupKey;
use crate::stats::{BlockedRatio, Confidence, PValues, VanElteren};

/// Comparison of a group in two experiments by van Elteren's test, whose blocks are the states of the machine: averages of launches are
/// compared with those in the same state only. A launch during which the state changed has an average in each.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockedGroup {
    /// Key of the group.
    pub key: GroupKey,
    /// States in which a launch of any of the two experiments measured the group.
    pub states: Vec<ComparedState>,
    /// Number of states in which launches of both did; without any, all that follows is missing.
    pub common: usize,
    /// p values.
    pub p: Option<PValues>,
    /// p values, adjusted by Holm's method over all groups.
    pub adjusted: Option<PValues>,
    /// Ratio of the first experiment to the second.
    pub ratio: Option<BlockedRatio>,
}

/// Averages of two experiments in one state of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedState {
    /// Index of the state.
    pub state: usize,
    /// Number of launches of each experiment.
    pub launches: [usize; 2],
    /// Median of the averages of the launches of each.
    pub medians: [Option<f64>; 2],
}

impl BlockedGroup {
    /// Compares the first experiment with the second in every group of any of them, by the [analyses](super::SplitExperiment::analyses) of
    /// each in all states.
    pub fn all(
        analyses: [&[Option<Analysis>]; 2],
        average: Average,
        confidence: Confidence,
    ) -> Vec<Self> {
        let groups = analyses.into_iter().flatten().flatten();
        let groups = groups.flat_map(|one| &one.groups);
        let keys = GroupKey::distinct(groups.map(|group| &group.key)).into_iter();
        let mut groups: Vec<Self> = keys
            .map(|key| Self::compare(key, analyses, average, confidence))
            .collect();
        let tested: Vec<PValues> = groups.iter().filter_map(|group| group.p).collect();
        let adjusted = PValues::adjusted(&tested);
        let tested = groups.iter_mut().filter(|group| group.p.is_some());
        for (group, adjusted) in tested.zip(adjusted) {
            group.adjusted = Some(adjusted);
        }
        groups
    }

    fn compare(
        key: &GroupKey,
        [first, second]: [&[Option<Analysis>]; 2],
        average: Average,
        confidence: Confidence,
    ) -> Self {
        let (mut found, mut blocks) = (Vec::new(), Vec::new());
        for (state, both) in first.iter().zip(second).enumerate() {
            let averages = <[_; 2]>::from(both).map(|one| {
                let group = one.as_ref()?.group(key)?;
                group.averages(average)
            });
            if averages.iter().all(Option::is_none) {
                continue;
            }
            found.push(ComparedState {
                state,
                launches: averages.map(|one| one.map_or(0, |one| one.len())),
                medians: averages.map(|one| one.map(|one| one.median())),
            });
            if let [Some(first), Some(second)] = averages {
                blocks.push([first, second]);
            }
        }
        let test = VanElteren::new(&blocks, confidence);
        Self {
            key: key.clone(),
            states: found,
            common: blocks.len(),
            p: test.map(|test| test.p),
            adjusted: None,
            ratio: test.and_then(|test| test.ratio),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{key, probed};
    use super::super::{AnalysisSettings, SplitByState};
    use super::*;
    use crate::Launch;

    /// An experiment of launches whose observations take a multiple of the round trips around them.
    fn experiment(round_trips: &[f64], times: f64) -> Vec<(String, Launch)> {
        let launches = ('a'..='z').zip(round_trips).map(|(name, round_trip)| {
            // Launches differ by some percent.
            let noise = 1.0 + 0.01 * f64::from(u32::from(name) % 7);
            probed(&name.to_string(), &[*round_trip; 9], times * noise)
        });
        launches.collect()
    }

    fn compared(first: &[(String, Launch)], second: &[(String, Launch)]) -> BlockedGroup {
        let split = SplitByState::new(&[first, second]).unwrap();
        let settings = AnalysisSettings::default();
        let analyses = split.experiments.iter();
        let analyses: Vec<_> = analyses
            .map(|one| one.analyses(&settings).unwrap())
            .collect();
        let both = [0, 1].map(|i| analyses[i].as_slice());
        let mut found = BlockedGroup::all(both, Average::Median, settings.confidence);
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    const FAST: f64 = 100.0;
    const SLOW: f64 = 400.0;

    /// The first was mostly in the fast state, the second in the slow one, but takes only 1.2 times as long in either.
    #[test]
    fn launches_in_one_state_are_compared() {
        let first = experiment(&[&[FAST; 9][..], &[SLOW; 3]].concat(), 1.0);
        let second = experiment(&[&[FAST; 3][..], &[SLOW; 9]].concat(), 1.2);
        let found = compared(&first, &second);
        assert_eq!((&found.key, found.common), (&key(8), 2));
        let launches: Vec<_> = found.states.iter().map(|state| state.launches).collect();
        assert_eq!(launches, [[9, 3], [3, 9]]);
        let ratio = found.ratio.unwrap();
        assert!((ratio.times * 1.2 - 1.0).abs() < 0.03, "{ratio:?}");
        assert!(found.p.unwrap().less < 0.001 && found.adjusted == found.p);
    }

    #[test]
    fn equal_experiments_in_unequal_states_do_not_differ() {
        let first = experiment(&[&[FAST; 9][..], &[SLOW; 3]].concat(), 1.0);
        let second = experiment(&[&[FAST; 3][..], &[SLOW; 9]].concat(), 1.0);
        assert!(compared(&first, &second).p.unwrap().two_sided > 0.05);
    }

    #[test]
    fn experiments_without_a_common_state_are_not_compared() {
        let found = compared(&experiment(&[FAST; 5], 1.0), &experiment(&[SLOW; 5], 1.0));
        assert_eq!((found.common, found.p, found.ratio), (0, None, None));
        let medians: Vec<_> = found
            .states
            .iter()
            .map(|one| one.medians.map(|one| one.is_some()))
            .collect();
        assert_eq!(medians, [[true, false], [false, true]]);
    }
}
