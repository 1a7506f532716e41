//! What launches measured, in files that outlive whatever ends a program.
//!
//! A launch writes one file. Each group is written at once, after it was measured, so that a program that is killed
//! loses no more than the group that it was at; the next one goes on where it stopped. A folder holds the launches of
//! one experiment, all with the same [`Factors`].
//!
//! ```text
//! # downbeat launch 1
//! # factor ranks = 4
//! # fact seed = 123
//! operation,bytes,ranks,call,state,nanos
//! allreduce,8,4,0,valid,375
//! allreduce,8,4,2,valid,381.25
//! # end allreduce,8,4 valid=2 late=1 long=0 avg=378.125 min=375
//! # complete
//! ```
//!
//! What stands behind the last `# end` line of a file without `# complete` was not finished, and does not count.
//! Lines may also end as on Windows, and those of one file need not be of one kind. A line has at most a mebibyte.
//!
//! ```
//! use downbeat_records::{RecordFormat, Journal, read_experiment};
//! use downbeat_records::{Factors, MeasuredGroup, GroupKey, Observations, CallTimes, ObservationState};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let folder = std::env::temp_dir().join(format!("downbeat-example-{}", std::process::id()));
//! let factors = Factors::default().with("ranks", &2);
//! let mut journal = Journal::open(&folder, "launch-001", RecordFormat::Csv, false, &factors, &Factors::default())?;
//!
//! let states = vec![ObservationState::Valid, ObservationState::Late, ObservationState::Valid];
//! let seen = Observations::new(1, states, CallTimes::Means(vec![375.0, 9_000.0, 381.25])).ok_or("three of one rank")?;
//! let key = GroupKey { operation: "allreduce".to_owned(), bytes: 8, ranks: 2 };
//! let figures = vec![("min".to_owned(), 375.0)];
//! journal.append(&MeasuredGroup { key, nanos: seen.run_times(), counts: vec![], figures }, &seen)?;
//! journal.complete()?;
//!
//! let found = read_experiment(&folder)?;
//! let (name, launch) = &found.launches[0];
//! assert_eq!((name.as_str(), launch.complete), ("launch-001", true));
//! assert_eq!(launch.groups[0].nanos, [375.0, 381.25]);
//! assert_eq!(launch.groups[0].counts, [(ObservationState::Valid, 2), (ObservationState::Late, 1), (ObservationState::Long, 0)]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

//! # Comparing two experiments
//! An experiment is several launches of a program, as launches differ by more than their calls explain; each comes to
//! one average, and two experiments are compared by these.
//!
//! ```
//! use downbeat_records::stats::{ExperimentAverages, Comparison, Confidence, RankMethod, Sample, stars};
//!
//! // The launches' medians and means, in microseconds, of an operation in two MPI libraries.
//! let (mut a_medians, mut a_means) = ([10.1, 10.4, 10.2, 10.6, 10.3], [10.4, 10.7, 10.6, 11.2, 10.5]);
//! let (mut b_medians, mut b_means) = ([10.9, 11.3, 11.0, 10.8, 11.1], [11.3, 11.6, 11.4, 11.0, 11.5]);
//! let a = ExperimentAverages { medians: Sample::new(&mut a_medians)?, means: Sample::new(&mut a_means)? };
//! let b = ExperimentAverages { medians: Sample::new(&mut b_medians)?, means: Sample::new(&mut b_means)? };
//! let found = Comparison::new(&a, &b, Confidence::USUAL);
//!
//! // All of A's medians are below all of B's: of the 252 orders of ten values, one is like that.
//! assert_eq!(found.mann_whitney.method, RankMethod::Exact);
//! assert_eq!(found.mann_whitney.p.less, 1.0 / 252.0);
//! assert_eq!(stars(found.mann_whitney.p.two_sided), "**");
//! // It is significant; is it large? Some 0.7 us.
//! assert!((found.shift.shift + 0.7).abs() < 1e-9);
//! assert!(!found.means_are_doubtful(0.05));
//!
//! // With more sizes there are more chances to err, so that a p counts for less.
//! let sizes = [found, found];
//! assert_eq!(Comparison::adjusted(&sizes)[0].less, 2.0 / 252.0);
//! # Ok::<(), downbeat_records::stats::StatsError>(())
//! ```
//!
//! [`stats::VarianceParts`] splits the variance into that between and that within launches, and says how many launches a
//! mean needs; [`stats::SampleSizeCheck`] says how many observations. All figures agree with R's: `wilcox.test`, `t.test`,
//! `shapiro.test`, `p.adjust` and `quantile`.
//!
//! [`analysis`] does all of this for whole experiments: which launches measured what, their averages, two experiments
//! compared in every size, and the spread of repetitions.
//!
//! # Caveats
//! * A test tells whether two experiments differ, not why: what else differed between them is for the record to say.
//! * Launches are taken as independent. Those of one job of a batch system share its nodes.
//! * A difference that is not significant is not shown to be absent: the interval of the shift says what it may be.
//! * Values are finite, but differences of values beyond 1e300, and squares of differences beyond 1e150, overflow.
//!
//! # What this crate does not do
//! It measures nothing: `downbeat-measure` does. It compares two experiments at a time, without pairing, and by their
//! averages only; Shapiro and Wilk's is its only test of normality.
#![forbid(unsafe_code)]

pub mod analysis;
mod append_file;
#[cfg(feature = "parquet")]
mod checksum;
mod content;
mod csv;
mod error;
mod experiment;
mod format;
#[cfg(test)]
mod hostile;
mod journal;
#[cfg(feature = "json")]
mod json;
mod launch;
mod observation;
mod observations;
#[cfg(feature = "parquet")]
mod parquet;
mod raw;
pub mod stats;
#[cfg(test)]
mod tests;

pub use error::RecordError;
pub use experiment::{
    Experiment, is_complete, launch_files, read_experiment, read_header, read_launch,
};
pub use format::RecordFormat;
pub use journal::Journal;
pub use launch::{Factors, GroupKey, Launch, MeasuredGroup};
pub use observation::{Observation, local_run_time, run_time};
pub use observations::{Basis, CallTimes, ObservationState, Observations};
