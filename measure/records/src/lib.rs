#![doc = include_str!("../README.md")]
//!
//! # Records
//! A launch, which is one run of a program, writes one file with a [`Journal`]. Each group, an operation with messages of
//! one size, is written when it is measured: a killed program loses only its current group, and the next launch of the
//! same name continues there. A folder contains the launches of one experiment, all with the same [`Factors`].
//!
//! ```text
//! # downbeat launch 1
//! # factor ranks = 4
//! # fact seed = 123
//! operation,bytes,ranks,call,state,nanos
//! # crc32 cb599d74
//! allreduce,8,4,0,valid,375
//! allreduce,8,4,2,valid,381.25
//! # end allreduce,8,4 valid=2 late=1 long=0 drifted=0 avg=378.125 min=375
//! # crc32 e387eeab
//! # complete
//! # crc32 75e89ee8
//! ```
//!
//! What is written at once ends with the CRC-32 of all bytes of the file before that line. Everything after the last
//! checksum of a file without `# complete` is incomplete and ignored. Lines have at most 1 MiB.
//!
//! ```
//! use downbeat_records::{Factors, GroupKey, Journal, MeasuredGroup, Observation, ObservationState, Observations};
//! use downbeat_records::{Checksums, RecordFormat, read_experiment};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let folder = std::env::temp_dir().join(format!("downbeat-example-{}", std::process::id()));
//! let factors = Factors::default().with("ranks", &2);
//! let facts = Factors::default();
//! let mut journal = Journal::open(&folder, "launch-001", RecordFormat::Csv, false, &factors, &facts)?;
//!
//! let call = |state, nanos| Observation { state, begin: 0, nanos };
//! let (valid, late) = (ObservationState::Valid, ObservationState::Late);
//! let observations = Observations(vec![call(valid, 375.0), call(late, 9_000.0), call(valid, 381.25)]);
//! let key = GroupKey { operation: "allreduce".to_owned(), bytes: 8, ranks: 2 };
//! let figures = vec![("min".to_owned(), 375.0)];
//! let group = MeasuredGroup { key, nanos: vec![], counts: vec![], figures };
//! journal.append(&group, &observations)?;
//! journal.complete()?;
//!
//! let experiment = read_experiment(&folder, Checksums::Verify)?;
//! let (name, launch) = &experiment.launches[0];
//! assert_eq!((name.as_str(), launch.complete), ("launch-001", true));
//! assert_eq!(launch.groups[0].nanos, [375.0, 381.25]);
//! assert_eq!(launch.groups[0].counts[1], (ObservationState::Late, 1));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Comparing two experiments
//! Launches of a program differ by more than their calls explain. Therefore an experiment has several launches, each is
//! represented by one average, and experiments are compared by these averages.
//!
//! ```
//! use downbeat_records::stats::{Comparison, Confidence, ExperimentAverages, RankMethod, Sample, stars};
//!
//! // Medians and means of launches, in microseconds, of an operation in two MPI libraries.
//! let (mut a_medians, mut a_means) = ([10.1, 10.4, 10.2, 10.6, 10.3], [10.4, 10.7, 10.6, 11.2, 10.5]);
//! let (mut b_medians, mut b_means) = ([10.9, 11.3, 11.0, 10.8, 11.1], [11.3, 11.6, 11.4, 11.0, 11.5]);
//! let a = ExperimentAverages { medians: Sample::new(&mut a_medians)?, means: Sample::new(&mut a_means)? };
//! let b = ExperimentAverages { medians: Sample::new(&mut b_medians)?, means: Sample::new(&mut b_means)? };
//! let comparison = Comparison::new(&a, &b, Confidence::USUAL);
//!
//! // All medians of A are below all medians of B: one of the 252 orders of ten values.
//! assert_eq!(comparison.mann_whitney.method, RankMethod::Exact);
//! assert_eq!(comparison.mann_whitney.p.less, 1.0 / 252.0);
//! assert_eq!(stars(comparison.mann_whitney.p.two_sided), "**");
//! // The difference is significant. Its size is 0.7 us.
//! assert!((comparison.shift.shift + 0.7).abs() < 1e-9);
//! // Five means could be of any distribution: the t-test is doubtful.
//! assert!(comparison.means_are_doubtful(0.05));
//!
//! // With several sizes, p values must be adjusted.
//! let sizes = [comparison, comparison];
//! assert_eq!(Comparison::adjusted(&sizes)[0].less, 2.0 / 252.0);
//! # Ok::<(), downbeat_records::stats::StatsError>(())
//! ```
//!
//! [`stats::VarianceParts`] splits the variance into the parts between and within launches;
//! [`launches_needed`](stats::Sample::launches_needed) limits the number of launches that an average needs, and
//! [`stats::SampleSizeCheck`] finds the number of observations. All results agree with those of R: `wilcox.test`, `t.test`,
//! `shapiro.test`, `p.adjust` and `quantile`; only tied values are counted exactly here, and approximated there.
//!
//! [`analysis`] applies these to whole experiments: averages of launches, comparison of two experiments in every group,
//! and the reproducibility of an experiment. [`import`] makes launches of what other benchmark suites printed.
//!
//! # Features
//! None is enabled by default; CSV is always available.
//! - `json`: the import of hyperfine's exports.
//! - `parquet`: the format Parquet.
//!
//! # Caveats
//! * A test shows that two experiments differ, but not the reason: compare their factors.
//! * Launches are assumed to be independent, but those of one batch job share its nodes.
//! * A difference that is not significant may still exist: the interval of the shift shows its possible size.
//! * Differences of values beyond 1e300 and squares of differences beyond 1e150 overflow.
//!
//! # What this crate does not do
//! It does not measure; `downbeat-measure` does. It compares two experiments at a time, without pairing, by averages of
//! launches only. The test of Shapiro and Wilk is its only test of normality.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod analysis;
mod append_file;
mod content;
mod csv;
mod error;
mod experiment;
mod format;
#[cfg(test)]
mod hostile;
pub mod import;
mod journal;
mod launch;
mod observations;
#[cfg(feature = "parquet")]
mod parquet;
mod raw;
#[cfg(test)]
mod sealed_tests;
pub mod stats;
#[cfg(test)]
mod tests;

#[doc(no_inline)]
pub use downbeat_files::Checksums;
pub use error::RecordError;
pub use experiment::{
    Experiment, is_complete, launch_files, read_binding, read_experiment, read_header, read_launch,
};
pub use format::RecordFormat;
pub use journal::Journal;
pub use launch::{
    CLOCK_STEP, Factors, GroupKey, HOSTS, LOAD, Launch, MeasuredGroup, NODES, ROUND_TRIPS, UNEQUAL,
    WALL,
};
pub use observations::{Observation, ObservationState, Observations};
pub use raw::{RawJournal, RawPlan};
