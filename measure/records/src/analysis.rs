//! What an experiment says: algorithm 3 of the 2016 paper, and what follows from it.
//!
//! An experiment is several launches. Each of its groups, an operation with messages of one size among so many ranks,
//! comes to one median and one mean in every launch, after outliers were set aside; so there is one distribution of
//! averages over launches, which is what everything else is about: [`ExperimentComparison`] of two experiments,
//! [`Reproducibility`] of many.
//!
//! ```
//! use downbeat_records::analysis::{Analysis, Average, Settings};
//! use downbeat_records::{Group, GroupKey, Launch, State};
//! use downbeat_records::stats::Confidence;
//!
//! let launch = |nanos: &[f64]| Launch {
//!     groups: vec![Group {
//!         key: GroupKey { operation: "allreduce".to_owned(), bytes: 8, ranks: 4 },
//!         nanos: nanos.to_vec(),
//!         counts: vec![(State::Valid, nanos.len() as u64), (State::Late, 1)],
//!         figures: vec![],
//!     }],
//!     ..Launch::default()
//! };
//! let experiment = [
//!     ("first".to_owned(), launch(&[400.0, 410.0, 405.0, 415.0, 9_000.0])),
//!     ("second".to_owned(), launch(&[420.0, 430.0, 425.0])),
//! ];
//! let analysis = Analysis::of(&experiment, &Settings::default())?;
//! let found = &analysis.groups[0];
//! assert_eq!((found.valid(), found.outliers(), found.count(State::Late)), (8, 1, 2));
//! let medians = found.averages(Average::Median).ok_or("two launches have one each")?;
//! assert_eq!(medians.values(), [407.5, 425.0]);
//! assert_eq!(medians.mean(), 416.25);
//! // Two launches are not enough to be sure: all of their range has a confidence of one half.
//! let interval = medians.median_interval(Confidence::USUAL).ok_or("two launches have a range")?;
//! assert!((interval.confidence - 0.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod comparison;
mod error;
#[cfg(test)]
mod examples;
mod factors;
mod group;
mod observations_needed;
mod reproducibility;

use std::collections::BTreeMap;

use downbeat_clock_core::Duration;

use crate::stats::{Confidence, Sample, SampleError};
use crate::{Factors, Group, GroupKey, Launch};

pub use comparison::{ComparedGroup, ExperimentComparison};
pub use error::AnalysisError;
pub use factors::{FactorDifference, factor_differences};
pub use group::{Average, GroupAnalysis, LaunchAverages};
pub use observations_needed::ObservationsNeeded;
pub use reproducibility::{Reproducibility, TrialMean};

/// How an experiment is analysed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What becomes of outliers.
    pub outliers: Outliers,
    /// The confidence of intervals.
    pub confidence: Confidence,
    /// To which share of itself, either way, the mean is to be known: this asks for a number of launches.
    pub interval: f64,
}

/// Tukey's filter, intervals of 95 %, and a mean that is to be known to 1 %.
impl Default for Settings {
    fn default() -> Self {
        Self {
            outliers: Outliers::Tukey,
            confidence: Confidence::USUAL,
            interval: 0.01,
        }
    }
}

/// What becomes of outliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outliers {
    /// They are observations like others.
    Keep,
    /// They are counted and set aside: what is further than 1.5 times the distance of the quartiles from the nearer of
    /// these, in each launch by itself.
    Tukey,
}

impl Outliers {
    /// As it is written in outputs, with the definition of quartiles, of which there are many.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "kept",
            Self::Tukey => {
                "Tukey's filter per launch: outside [Q1 - 1.5 IQR, Q3 + 1.5 IQR], quartiles by R's type 7"
            }
        }
    }

    /// The observations of a group that count, sorted in place; `None` if there are none.
    fn kept<'a>(
        self,
        launch: &str,
        key: &GroupKey,
        nanos: &'a mut [f64],
    ) -> Result<Option<Sample<'a>>, AnalysisError> {
        let no_time = || AnalysisError::NoTime {
            launch: launch.to_owned(),
            key: key.clone(),
        };
        let all = match Sample::new(nanos) {
            Err(SampleError::Empty) => return Ok(None),
            all => all.map_err(|_| no_time())?,
        };
        let ends = [all.values()[0], all.values()[all.len() - 1]];
        match self {
            _ if !ends.into_iter().all(is_time) => Err(no_time()),
            Self::Keep => Ok(Some(all)),
            Self::Tukey => Ok(Some(all.without_outliers())),
        }
    }
}

/// What an experiment says.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// How it was found out.
    pub settings: Settings,
    /// What all launches have in common.
    pub factors: Factors,
    /// The names of the launches, in their order.
    pub launches: Vec<String>,
    /// Which of them were not measured to their end.
    pub incomplete: Vec<String>,
    /// By operation, size and ranks.
    pub groups: Vec<GroupAnalysis>,
}

impl Analysis {
    /// Analyses launches, each with its name. They stay as they are: a report may want the order of observations.
    ///
    /// # Errors
    /// When there is no launch, their factors differ, one has the same group twice, or something that is no time.
    pub fn of(launches: &[(String, Launch)], settings: &Settings) -> Result<Self, AnalysisError> {
        let (_, first) = launches.first().ok_or(AnalysisError::NoLaunches)?;
        for (name, launch) in launches {
            if let Some(factor) = first.factors.differing(&launch.factors) {
                return Err(AnalysisError::MixedFactors {
                    launch: name.clone(),
                    factor: factor.to_owned(),
                });
            }
        }
        let analysed = by_key(launches)?
            .into_iter()
            .map(|(key, of)| GroupAnalysis::of(key, launches, &of, settings));
        Ok(Self {
            settings: *settings,
            factors: first.factors.clone(),
            launches: launches.iter().map(|(name, _)| name.clone()).collect(),
            incomplete: launches
                .iter()
                .filter(|(_, launch)| !launch.complete)
                .map(|(name, _)| name.clone())
                .collect(),
            groups: analysed.collect::<Result<_, _>>()?,
        })
    }

    /// What was found out about one group.
    pub fn group(&self, key: &GroupKey) -> Option<&GroupAnalysis> {
        self.groups.iter().find(|group| group.key == *key)
    }
}

/// Whether this is a number of nanoseconds that a clock can tell, so that no sum or square of them overflows.
fn is_time(nanos: f64) -> bool {
    nanos.abs() <= Duration::MAX.as_nanos() as f64
}

/// For each key, the group of every launch, if it has one.
type ByKey<'a> = BTreeMap<&'a GroupKey, Vec<Option<&'a Group>>>;

fn by_key(launches: &[(String, Launch)]) -> Result<ByKey<'_>, AnalysisError> {
    let mut found = ByKey::new();
    for (place, (name, launch)) in launches.iter().enumerate() {
        for group in &launch.groups {
            let of_launches = found
                .entry(&group.key)
                .or_insert_with(|| vec![None; launches.len()]);
            if of_launches[place].replace(group).is_some() {
                return Err(AnalysisError::Twice {
                    launch: name.clone(),
                    key: group.key.clone(),
                });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::examples::{experiment, group, key, launch};
    use super::*;

    #[test]
    fn what_cannot_be_analysed_is_named() {
        let refused = |launches: &[(String, Launch)]| {
            Analysis::of(launches, &Settings::default()).unwrap_err()
        };
        assert_eq!(refused(&[]), AnalysisError::NoLaunches);
        let twice = [
            launch("a", &[group(8, &[1.0])]),
            launch("b", &[group(8, &[1.0]), group(8, &[2.0])]),
        ];
        assert_eq!(
            refused(&twice),
            AnalysisError::Twice {
                launch: "b".to_owned(),
                key: key(8)
            }
        );
        let no_time = AnalysisError::NoTime {
            launch: "b".to_owned(),
            key: key(8),
        };
        for nanos in [f64::NAN, f64::INFINITY, 1e19, -1e19] {
            assert_eq!(
                refused(&experiment(&[&[1.0], &[1.0, nanos]])),
                no_time,
                "{nanos}"
            );
        }
        assert!(Analysis::of(&experiment(&[&[9e18, -9e18, 0.0]]), &Settings::default()).is_ok());
        let mut mixed = experiment(&[&[1.0], &[1.0]]);
        mixed[1].1.factors = Factors::default().with("ranks", &3);
        let found = refused(&mixed);
        assert_eq!(
            found.to_string(),
            "b: the factor \"ranks\" is not that of the first launch"
        );
        assert_eq!(
            no_time.to_string(),
            "b: bcast, 8 bytes, 2 ranks: a time is not a number, or longer than 292 years"
        );
    }

    #[test]
    fn launches_stay_as_they_are_and_those_without_an_end_are_named() {
        let mut launches = experiment(&[&[3.0, 1.0, 2.0], &[5.0, 4.0]]);
        launches[1].1.complete = false;
        let before = launches.clone();
        let analysis = Analysis::of(&launches, &Settings::default()).unwrap();
        assert_eq!(
            (launches, analysis.incomplete.join(" ")),
            (before, "b".to_owned())
        );
        assert_eq!(analysis.factors.get("ranks"), Some("2"));
    }
}
