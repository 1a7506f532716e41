//! Analysis of experiments: algorithm 3 of Hunold 2016, comparisons and reproducibility.
//!
//! An experiment consists of launches. In every launch, each group, an operation with messages of one size on a number of
//! ranks, is reduced to a median and a mean, after outliers are removed. These averages of launches are the input of
//! everything else: [`ExperimentComparison`] of two experiments, [`Reproducibility`] of repeated experiments.
//!
//! ```
//! use downbeat_records::analysis::{Analysis, AnalysisSettings, Average};
//! use downbeat_records::stats::Confidence;
//! use downbeat_records::{GroupKey, Launch, MeasuredGroup, ObservationState};
//!
//! let launch = |nanos: &[f64]| Launch {
//!     groups: vec![MeasuredGroup {
//!         key: GroupKey { operation: "allreduce".to_owned(), bytes: 8, ranks: 4 },
//!         nanos: nanos.to_vec(),
//!         counts: vec![(ObservationState::Valid, nanos.len() as u64), (ObservationState::Late, 1)],
//!         figures: vec![],
//!     }],
//!     ..Launch::default()
//! };
//! let experiment = [
//!     ("first".to_owned(), launch(&[400.0, 410.0, 405.0, 415.0, 9_000.0])),
//!     ("second".to_owned(), launch(&[420.0, 430.0, 425.0])),
//! ];
//! let analysis = Analysis::new(&experiment, &AnalysisSettings::default())?;
//! let group = &analysis.groups[0];
//! assert_eq!((group.valid(), group.outliers(), group.count(ObservationState::Late)), (8, 1, 2));
//! let medians = group.averages(Average::Median).ok_or("no medians")?;
//! assert_eq!(medians.values(), [407.5, 425.0]);
//! assert_eq!(medians.mean(), 416.25);
//! // Two launches are too few for 95 %: their range has a confidence of one half.
//! let interval = medians.median_interval(Confidence::USUAL).ok_or("no interval")?;
//! assert!((interval.confidence - 0.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod comparison;
mod conditions;
#[cfg(test)]
mod examples;
mod experiment;
mod factors;
mod group;
mod guidelines;
mod observations_needed;
mod reproducibility;
mod settings;

pub use comparison::{ComparedGroup, ExperimentComparison};
pub use conditions::{BusySign, LaunchConditions};
pub use experiment::Analysis;
pub use factors::{FactorDifference, factor_differences};
pub use group::{Average, GroupAnalysis, LaunchAverages};
pub use guidelines::{Guideline, GuidelineKind, GuidelineTest, Guidelines, TestedGuideline};
pub use observations_needed::ObservationsNeeded;
pub use reproducibility::{Reproducibility, TrialMean};
pub use settings::{AnalysisSettings, Outliers};
