//! Reproducibility of a whole experiment: figure 12 of Hunold 2016.

use super::experiment::Analysis;
use super::group::Average;
use crate::GroupKey;
use crate::stats::{Confidence, Interval, Sample};

/// Differences between repetitions of an experiment, called trials, in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproducibility {
    /// Key of the group.
    pub key: GroupKey,
    /// Mean of each trial, in their order.
    pub trials: Vec<TrialMean>,
    /// Names of the trials without averages of the group.
    pub missing: Vec<String>,
}

/// Mean of one trial.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct TrialMean {
    /// Name of the trial.
    pub trial: String,
    /// Number of launches with an average.
    pub launches: usize,
    /// Mean of the averages of the launches.
    #[cfg_attr(feature = "json", serde(rename = "mean_ns"))]
    pub mean: f64,
    /// The mean divided by the smallest mean of all trials; `None` if that is not positive.
    pub ratio: Option<f64>,
}

impl Reproducibility {
    /// Compares the trials, each with its name, in every group of any of them.
    pub fn for_trials(trials: &[(String, Analysis)], average: Average) -> Vec<Self> {
        let groups = trials.iter().flat_map(|(_, trial)| &trial.groups);
        GroupKey::distinct(groups.map(|group| &group.key))
            .into_iter()
            .map(|key| Self::for_group(key, trials, average))
            .collect()
    }

    fn for_group(key: &GroupKey, trials: &[(String, Analysis)], average: Average) -> Self {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (trial, analysis) in trials {
            match analysis
                .group(key)
                .and_then(|group| group.averages(average))
            {
                Some(averages) => found.push((trial.clone(), averages.len(), averages.mean())),
                None => missing.push(trial.clone()),
            }
        }
        let smallest = found
            .iter()
            .map(|(.., mean)| *mean)
            .fold(f64::INFINITY, f64::min);
        let ratio = |mean: f64| (smallest > 0.0).then(|| mean / smallest);
        let trials = found.into_iter();
        Self {
            key: key.clone(),
            trials: trials
                .map(|(trial, launches, mean)| TrialMean {
                    trial,
                    launches,
                    mean,
                    ratio: ratio(mean),
                })
                .collect(),
            missing,
        }
    }

    /// Standard deviation of the means relative to their mean, and its confidence interval if the means are normal. `None` with
    /// fewer than two trials.
    pub fn deviation(&self, confidence: Confidence) -> Option<(f64, Option<Interval>)> {
        let mut means: Vec<f64> = self.trials.iter().map(|trial| trial.mean).collect();
        let means = Sample::new(&mut means).ok()?;
        let relative = |nanos: f64| nanos / means.mean();
        let interval = means.deviation_interval(confidence).map(|found| Interval {
            low: relative(found.low),
            high: relative(found.high),
        });
        Some((means.coefficient_of_variation()?, interval))
    }

    /// The largest mean relative to the smallest, minus one, which grows with the number of trials. `None` with fewer than two
    /// trials, or without ratios.
    pub fn spread(&self) -> Option<f64> {
        if self.trials.len() < 2 {
            return None;
        }
        self.trials
            .iter()
            .filter_map(|trial| trial.ratio)
            .reduce(f64::max)
            .map(|largest| largest - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::AnalysisSettings;
    use super::super::examples::{experiment, group, key, launch};
    use super::*;
    use crate::Launch;

    fn trials(all: &[Vec<(String, Launch)>]) -> Vec<(String, Analysis)> {
        let analyse =
            |launches: &Vec<_>| Analysis::new(launches, &AnalysisSettings::default()).unwrap();
        ["one", "two", "three"]
            .iter()
            .zip(all)
            .map(|(name, all)| ((*name).to_owned(), analyse(all)))
            .collect()
    }

    /// Medians 10 and 14, 12 and 18, and 11: their means are 12, 15 and 11, so the ratios 12/11, 15/11 and 1.
    #[test]
    fn ratios_are_those_of_means_of_medians_to_the_smallest() {
        let all = [
            experiment(&[&[9.0, 10.0, 13.0], &[14.0]]),
            experiment(&[&[12.0, 12.0], &[18.0]]),
            experiment(&[&[10.0, 12.0]]),
        ];
        let found = Reproducibility::for_trials(&trials(&all), Average::Median);
        assert_eq!((found.len(), &found[0].key), (1, &key(8)));
        let shown: Vec<_> = found[0]
            .trials
            .iter()
            .map(|trial| (trial.launches, trial.mean, trial.ratio))
            .collect();
        let expected = [
            (2, 12.0, Some(12.0 / 11.0)),
            (2, 15.0, Some(15.0 / 11.0)),
            (1, 11.0, Some(1.0)),
        ];
        assert_eq!(shown, expected);
        assert_eq!(found[0].spread(), Some(15.0 / 11.0 - 1.0));
        // By SciPy: the standard deviation of 12, 15 and 11 relative to their mean, divided by the roots of chi2.ppf(_, 2) / 2.
        let (deviation, interval) = found[0].deviation(Confidence::USUAL).unwrap();
        let interval = interval.unwrap();
        for (found, expected) in [
            (deviation, 0.164_342_052_6),
            (interval.low, 0.085_566_048_2),
            (interval.high, 1.032_846_200_0),
        ] {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
        // The mean of 9, 10 and 13 differs from their median.
        let means = Reproducibility::for_trials(&trials(&all), Average::Mean);
        assert_eq!(means[0].trials[0].mean, (32.0 / 3.0 + 14.0) / 2.0);
        let reported = Reproducibility::for_trials(&trials(&all), Average::Reported);
        assert_eq!((reported[0].missing.len(), reported[0].spread()), (3, None));
    }

    #[test]
    fn trials_without_common_groups_have_no_spread() {
        let all = [
            vec![launch("a", &[group(8, &[2.0])])],
            vec![launch("a", &[group(16, &[0.0])])],
        ];
        let found = Reproducibility::for_trials(&trials(&all), Average::Median);
        assert_eq!(
            (found.len(), found[0].missing.join(" "), found[0].spread()),
            (2, "two".to_owned(), None)
        );
        assert_eq!(
            (found[0].trials[0].ratio, found[1].trials[0].ratio),
            (Some(1.0), None)
        );
    }
}
