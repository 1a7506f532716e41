//! What launches measured, in files that outlive whatever ends a program.
//!
//! A launch writes one file. Each group is written at once, after it was measured, so that a program that is killed
//! loses no more than the group that it was at; the next one goes on where it stopped. A folder holds the launches of
//! one experiment, all with the same [`Factors`](crate::Factors).
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
//! use downbeat_measure::records::{Format, Journal, read_experiment};
//! use downbeat_measure::{Factors, Group, GroupKey, Observations, Stamps, State};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let folder = std::env::temp_dir().join(format!("downbeat-example-{}", std::process::id()));
//! let factors = Factors::default().with("ranks", &2);
//! let mut journal = Journal::open(&folder, "launch-001", Format::Csv, false, &factors, &Factors::default())?;
//!
//! let states = vec![State::Valid, State::Late, State::Valid];
//! let seen = Observations::new(1, states, Stamps::Means(vec![375.0, 9_000.0, 381.25])).ok_or("three of one rank")?;
//! let key = GroupKey { operation: "allreduce".to_owned(), bytes: 8, ranks: 2 };
//! let figures = vec![("min".to_owned(), 375.0)];
//! journal.append(&Group { key, nanos: seen.run_times(), counts: vec![], figures }, &seen)?;
//! journal.complete()?;
//!
//! let found = read_experiment(&folder)?;
//! let (name, launch) = &found.launches[0];
//! assert_eq!((name.as_str(), launch.complete), ("launch-001", true));
//! assert_eq!(launch.groups[0].nanos, [375.0, 381.25]);
//! assert_eq!(launch.groups[0].counts, [(State::Valid, 2), (State::Late, 1), (State::Long, 0)]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```

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
pub(crate) mod lines;
pub(crate) mod number;
#[cfg(feature = "parquet")]
mod parquet;
mod raw;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use csv::shown;
pub(crate) use error::Flaw;
pub use error::RecordError;
pub(crate) use experiment::open;
pub use experiment::{Experiment, is_complete, launch_files, read_experiment, read_head, read_launch};
pub use format::Format;
pub use journal::Journal;
