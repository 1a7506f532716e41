//! Analysis of one group over all launches.

use super::settings::{AnalysisSettings, KeptObservations, is_time};
use crate::RecordError;
use crate::stats::{Sample, StatsError, VarianceParts};
use crate::{GroupKey, Launch, MeasuredGroup, ObservationState};

/// Average that represents a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Average {
    /// Median of the observations.
    Median,
    /// Mean of the observations.
    Mean,
    /// First figure of the processing, as other benchmark suites report it.
    Reported,
}

impl Average {
    /// All averages.
    pub const ALL: [Self; 3] = [Self::Median, Self::Mean, Self::Reported];

    /// Name of the average in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Reported => "reported",
        }
    }
}

/// Analysis of one group over all launches.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupAnalysis {
    /// Key of the group.
    pub key: GroupKey,
    /// Launches that measured the group, in their order.
    pub launches: Vec<LaunchAverages>,
    /// Names of the launches that did not.
    pub missing: Vec<String>,
    /// Parts of the variance of the observations, without outliers.
    pub variance: Result<VarianceParts, StatsError>,
    /// Averages of the launches of each kind, sorted.
    averages: [Vec<f64>; Average::ALL.len()],
}

/// Averages of one group in one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchAverages {
    /// Name of the launch.
    pub launch: String,
    /// Number of observations in each state, including those that were not kept.
    pub counts: Vec<(ObservationState, u64)>,
    /// Number of valid observations.
    pub valid: usize,
    /// Number of valid observations that are outliers.
    pub outliers: usize,
    /// Number of these that are larger than all others.
    pub outliers_above: usize,
    /// Median and mean of all valid observations, with outliers.
    pub of_all: Option<[f64; 2]>,
    /// Median without outliers; `None` if there are no observations.
    pub median: Option<f64>,
    /// Mean without outliers.
    pub mean: Option<f64>,
    /// First figure of the processing.
    pub reported: Option<f64>,
}

impl LaunchAverages {
    /// The average of this kind.
    pub fn average(&self, which: Average) -> Option<f64> {
        match which {
            Average::Median => self.median,
            Average::Mean => self.mean,
            Average::Reported => self.reported,
        }
    }

    /// Number of observations in this state.
    pub fn count(&self, state: ObservationState) -> u64 {
        self.counts
            .iter()
            .filter(|(known, _)| *known == state)
            .map(|(_, count)| count)
            .sum()
    }
}

impl GroupAnalysis {
    pub(super) fn new(
        key: &GroupKey,
        launches: &[(String, Launch)],
        groups: &[Option<&MeasuredGroup>],
        settings: &AnalysisSettings,
    ) -> Result<Self, RecordError> {
        // A copy of the observations of one group at a time: it is sorted, and the original keeps
        // its order.
        let mut observations: Vec<(&String, f64, &MeasuredGroup, Vec<f64>)> = Vec::new();
        let mut missing = Vec::new();
        for ((name, launch), group) in launches.iter().zip(groups) {
            match group {
                Some(group) => {
                    observations.push((name, launch.clock_step(), *group, group.nanos.clone()));
                }
                None => missing.push(name.clone()),
            }
        }
        let (mut launch_averages, mut samples) = (Vec::new(), Vec::new());
        for (name, step, group, nanos) in &mut observations {
            let found = settings.outliers.kept(name, key, nanos, *step)?;
            let kept = found.map(|found| found.kept);
            let found = averages_of(name, group, found.as_ref());
            if found.reported.is_some_and(|nanos| !is_time(nanos)) {
                return Err(RecordError::InvalidTime {
                    launch: (*name).clone(),
                    key: key.clone(),
                });
            }
            launch_averages.push(found);
            samples.extend(kept);
        }
        let variance = VarianceParts::new(&samples);
        Ok(Self {
            key: key.clone(),
            missing,
            variance,
            averages: Average::ALL.map(|which| {
                sorted(
                    launch_averages
                        .iter()
                        .filter_map(|launch| launch.average(which)),
                )
            }),
            launches: launch_averages,
        })
    }

    /// Averages of the launches that have one; `None` if no launch has.
    pub fn averages(&self, which: Average) -> Option<Sample<'_>> {
        let sorted = &self.averages[which as usize];
        (!sorted.is_empty()).then_some(Sample { sorted })
    }

    /// Upper limit of the number of launches that this average needs for the wanted precision; see
    /// [`Sample::launches_needed`].
    pub fn launches_needed(&self, which: Average, settings: &AnalysisSettings) -> Option<u64> {
        self.averages(which)?
            .launches_needed(settings.interval, settings.confidence)
    }

    /// Largest average relative to the smallest, minus one; `None` if there are none, or they are
    /// not positive.
    pub fn spread(&self, which: Average) -> Option<f64> {
        let averages = self.averages(which)?.values();
        let (least, most) = (averages.first()?, averages.last()?);
        (*least > 0.0).then(|| most / least - 1.0)
    }

    /// Number of valid observations in all launches.
    pub fn valid(&self) -> usize {
        self.launches.iter().map(|launch| launch.valid).sum()
    }

    /// Number of outliers in all launches.
    pub fn outliers(&self) -> usize {
        self.launches.iter().map(|launch| launch.outliers).sum()
    }

    /// Number of outliers in all launches that are larger than the other observations.
    pub fn outliers_above(&self) -> usize {
        self.launches
            .iter()
            .map(|launch| launch.outliers_above)
            .sum()
    }

    /// Median of the launches' medians and mean of their means, with outliers; `None` if there are no observations.
    pub fn of_all(&self) -> Option<[f64; 2]> {
        let each = |which: usize| {
            sorted(
                self.launches
                    .iter()
                    .filter_map(|launch| Some(launch.of_all?[which])),
            )
        };
        let (medians, means) = (each(0), each(1));
        let [medians, means] = [&medians, &means].map(|sorted| Sample { sorted });
        (medians.len() > 0).then(|| [medians.median(), means.mean()])
    }

    /// Number of observations of all launches in this state.
    pub fn count(&self, state: ObservationState) -> u64 {
        self.launches.iter().map(|launch| launch.count(state)).sum()
    }
}

fn averages_of(
    launch: &str,
    group: &MeasuredGroup,
    found: Option<&KeptObservations<'_>>,
) -> LaunchAverages {
    let kept = found.map(|found| &found.kept);
    let above = |found: &KeptObservations<'_>| {
        let most = found.kept.values().last().copied().unwrap_or(f64::INFINITY);
        let all = found.all.values();
        all.len() - all.partition_point(|value| *value <= most)
    };
    LaunchAverages {
        launch: launch.to_owned(),
        counts: group.counts.clone(),
        valid: group.nanos.len(),
        outliers: group.nanos.len() - kept.map_or(0, Sample::len),
        outliers_above: found.map_or(0, above),
        of_all: found.map(|found| [found.all.median(), found.all.mean()]),
        median: kept.map(Sample::median),
        mean: kept.map(Sample::mean),
        reported: group.figures.first().map(|(_, nanos)| *nanos),
    }
}

fn sorted(averages: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut averages: Vec<f64> = averages.collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

#[cfg(test)]
mod tests {
    use super::super::examples::{experiment, group, key, launch};
    use super::super::{Analysis, Outliers};
    use super::*;
    use crate::stats::{Confidence, Interval};

    fn analyse(launches: &[(String, Launch)], outliers: Outliers) -> Analysis {
        Analysis::new(
            launches,
            &AnalysisSettings {
                outliers,
                ..AnalysisSettings::default()
            },
        )
        .unwrap()
    }

    /// Algorithm 3 by hand. Launch a: quartiles 12 and 16, so that the fence is 6 to 22. Launch b:
    /// quartiles 20.5 and 21.5, fence 19 to 23. The third launch has the fence 30.
    #[test]
    fn each_launch_comes_to_a_median_and_a_mean_without_its_outliers() {
        let launches = experiment(&[
            &[16.0, 10.0, 12.0, 100.0, 14.0],
            &[22.0, 21.0, 20.0],
            &[30.0],
        ]);
        let analysis = analyse(&launches, Outliers::Tukey);
        assert_eq!(
            (analysis.launches.join(" "), analysis.groups.len()),
            ("a b c".to_owned(), 1)
        );
        let found = &analysis.groups[0];
        let launches: Vec<_> = found
            .launches
            .iter()
            .map(|launch| (launch.valid, launch.outliers, launch.median, launch.mean))
            .collect();
        let expected = [
            (5, 1, Some(13.0), Some(13.0)),
            (3, 0, Some(21.0), Some(21.0)),
            (1, 0, Some(30.0), Some(30.0)),
        ];
        assert_eq!(launches, expected);
        assert_eq!(
            (
                found.valid(),
                found.outliers(),
                found.count(ObservationState::Late),
                found.count(ObservationState::Valid)
            ),
            (9, 1, 3, 9)
        );
        // With the outlier: medians of 14, 21 and 30, and means of 30.4, 21 and 30.
        let of_all = found.of_all().unwrap();
        assert_eq!((found.outliers_above(), of_all[0]), (1, 21.0));
        assert!((of_all[1] - 81.4 / 3.0).abs() < 1e-12, "{of_all:?}");
        let medians = found.averages(Average::Median).unwrap();
        assert_eq!(
            (medians.values(), medians.median()),
            (&[13.0, 21.0, 30.0][..], 21.0)
        );
        assert_eq!(
            medians.median_interval(Confidence::USUAL).unwrap().interval,
            Interval {
                low: 13.0,
                high: 30.0
            }
        );
        assert_eq!(found.averages(Average::Mean).unwrap().mean(), 64.0 / 3.0);
        assert_eq!(found.spread(Average::Median), Some(30.0 / 13.0 - 1.0));
        assert_eq!(
            (
                found.averages(Average::Reported),
                found.spread(Average::Reported)
            ),
            (None, None)
        );

        let kept = analyse(
            &experiment(&[&[16.0, 10.0, 12.0, 100.0, 14.0]]),
            Outliers::Keep,
        );
        let launch = &kept.groups[0].launches[0];
        assert_eq!(
            (launch.outliers, launch.median, launch.mean),
            (0, Some(14.0), Some(30.4))
        );
    }

    /// Means 2 and 5, as in the test of the variance parts: within 1, between (13.5 - 1) / 3.
    #[test]
    fn variance_is_divided_and_launches_are_planned() {
        let found = &analyse(
            &experiment(&[&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]]),
            Outliers::Tukey,
        )
        .groups[0];
        let parts = found.variance.unwrap();
        assert_eq!((parts.within(), parts.between()), (1.0, 12.5 / 3.0));
        let needed = |found: &GroupAnalysis| {
            found.launches_needed(Average::Median, &AnalysisSettings::default())
        };
        assert_eq!(needed(found), None);
        let six: Vec<Vec<f64>> = (0..6).map(|i| vec![100.0 + f64::from(i)]).collect();
        let six: Vec<&[f64]> = six.iter().map(Vec::as_slice).collect();
        let medians = analyse(&experiment(&six), Outliers::Tukey);
        assert!(needed(&medians.groups[0]).is_some_and(|needed| (60..90).contains(&needed)));
        let one = &analyse(&experiment(&[&[1.0, 2.0, 3.0]]), Outliers::Tukey).groups[0];
        assert_eq!(
            (one.variance, needed(one)),
            (Err(StatsError::TooFewLaunches(1)), None)
        );
    }

    #[test]
    fn launches_without_a_group_are_named_and_without_valid_observations_counted() {
        let launches = [
            launch("first", &[group(8, &[1.0, 3.0]), group(16, &[5.0])]),
            launch("second", &[group(8, &[])]),
            launch("third", &[group(16, &[7.0])]),
        ];
        let analysis = analyse(&launches, Outliers::Tukey);
        assert_eq!(
            analysis
                .groups
                .iter()
                .map(|group| group.key.bytes)
                .collect::<Vec<_>>(),
            [8, 16]
        );
        let (eight, sixteen) = (
            analysis.group(&key(8)).unwrap(),
            analysis.group(&key(16)).unwrap(),
        );
        assert_eq!(
            (eight.missing.join(" "), sixteen.missing.join(" ")),
            ("third".to_owned(), "second".to_owned())
        );
        assert_eq!(
            (
                eight.launches.len(),
                eight.launches[1].median,
                eight.count(ObservationState::Late)
            ),
            (2, None, 2)
        );
        assert_eq!(eight.averages(Average::Median).unwrap().values(), [2.0]);
        assert_eq!(analysis.group(&key(32)), None);
    }

    #[test]
    fn the_reported_average_is_the_first_figure() {
        let mut launches = experiment(&[&[1.0], &[1.0]]);
        launches[0].1.groups[0].figures = vec![("avg".to_owned(), 9.0), ("min".to_owned(), 1.0)];
        launches[1].1.groups[0].figures = vec![("avg".to_owned(), 6.0)];
        let analysis = analyse(&launches, Outliers::Tukey);
        assert_eq!(
            analysis.groups[0]
                .averages(Average::Reported)
                .unwrap()
                .values(),
            [6.0, 9.0]
        );
        assert_eq!(analysis.groups[0].spread(Average::Reported), Some(0.5));
        launches[1].1.groups[0].figures[0].1 = f64::NAN;
        let refused = Analysis::new(&launches, &AnalysisSettings::default());
        assert!(matches!(refused, Err(RecordError::InvalidTime { launch, .. }) if launch == "b"));
    }
}
