//! What an experiment says: algorithm 3 of the 2016 paper, and what follows from it.
//!
//! An experiment is several launches. Each of its groups, an operation with messages of one size among so many ranks,
//! comes to one median and one mean in every launch, after outliers were set aside; so there is one distribution of
//! averages over launches, which is what everything else is about: [`ExperimentComparison`] of two experiments,
//! [`Reproducibility`] of many.
//!
//! ```
//! use downbeat_records::analysis::{Analysis, Average, AnalysisSettings};
//! use downbeat_records::{MeasuredGroup, GroupKey, Launch, ObservationState};
//! use downbeat_records::stats::Confidence;
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
//! let found = &analysis.groups[0];
//! assert_eq!((found.valid(), found.outliers(), found.count(ObservationState::Late)), (8, 1, 2));
//! let medians = found.averages(Average::Median).ok_or("two launches have one each")?;
//! assert_eq!(medians.values(), [407.5, 425.0]);
//! assert_eq!(medians.mean(), 416.25);
//! // Two launches are not enough to be sure: all of their range has a confidence of one half.
//! let interval = medians.median_interval(Confidence::USUAL).ok_or("two launches have a range")?;
//! assert!((interval.confidence - 0.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod comparison;
#[cfg(test)]
mod examples;
mod experiment;
mod factors;
mod group;
mod observations_needed;
mod reproducibility;
mod settings;

pub use comparison::{ComparedGroup, ExperimentComparison};
pub use experiment::Analysis;
pub use factors::{FactorDifference, factor_differences};
pub use group::{Average, GroupAnalysis, LaunchAverages};
pub use observations_needed::ObservationsNeeded;
pub use reproducibility::{Reproducibility, TrialMean};
pub use settings::{AnalysisSettings, Outliers};
