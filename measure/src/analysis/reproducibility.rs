//! How well a whole experiment can be repeated: figure 12 of the 2016 paper.

use super::{Analysis, Average};
use crate::GroupKey;

/// How far repetitions of an experiment, called trials, are apart in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproducibility {
    /// What was measured.
    pub key: GroupKey,
    /// What each trial comes to, in their order.
    pub trials: Vec<TrialMean>,
    /// The names of the trials that have no averages of it.
    pub missing: Vec<String>,
}

/// What one trial comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialMean {
    /// The name of the trial.
    pub trial: String,
    /// How many of its launches have an average.
    pub launches: usize,
    /// The mean of the launches' averages.
    pub mean: f64,
    /// This divided by the smallest of all trials; `None` if that is not positive.
    pub ratio: Option<f64>,
}

impl Reproducibility {
    /// Looks at each group of any of the trials; each trial has a name.
    pub fn of(trials: &[(String, Analysis)], of: Average) -> Vec<Self> {
        let mut keys: Vec<&GroupKey> =
            trials.iter().flat_map(|(_, trial)| &trial.groups).map(|group| &group.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().map(|key| Self::of_group(key, trials, of)).collect()
    }

    fn of_group(key: &GroupKey, trials: &[(String, Analysis)], of: Average) -> Self {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (trial, analysis) in trials {
            match analysis.group(key).and_then(|group| group.averages(of)) {
                Some(averages) => found.push((trial.clone(), averages.len(), averages.mean())),
                None => missing.push(trial.clone()),
            }
        }
        let smallest = found.iter().map(|(.., mean)| *mean).fold(f64::INFINITY, f64::min);
        let ratio = |mean: f64| (smallest > 0.0).then(|| mean / smallest);
        let trials = found.into_iter();
        Self {
            key: key.clone(),
            trials: trials
                .map(|(trial, launches, mean)| TrialMean { trial, launches, mean, ratio: ratio(mean) })
                .collect(),
            missing,
        }
    }

    /// The figure of merit: by which share the largest mean is above the smallest. `None` if there are no two trials,
    /// or no ratios.
    pub fn spread(&self) -> Option<f64> {
        if self.trials.len() < 2 {
            return None;
        }
        self.trials.iter().filter_map(|trial| trial.ratio).reduce(f64::max).map(|largest| largest - 1.0)
    }
}
