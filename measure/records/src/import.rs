//! Import of the results of other benchmark suites as launches, so that they can be analysed and compared as records.
//!
//! ```
//! use downbeat_records::import::{ImportFormat, ImportSettings, import};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let printed = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n8                      29.52\n";
//! let settings = ImportSettings { ranks: Some(4), ..ImportSettings::default() };
//! let imported = import(printed.as_bytes(), &settings).map_err(|flaw| flaw.in_file("osu.txt".as_ref()))?;
//! assert_eq!(imported.format, ImportFormat::Osu);
//! let group = &imported.launches[0].launch.groups[0];
//! assert_eq!((group.key.to_string().as_str(), group.nanos.as_slice()), ("allreduce, 8 bytes, 4 ranks", [29_520.0].as_slice()));
//! # Ok(())
//! # }
//! ```
//!
//! # What becomes an observation
//! | suite | observation | launch |
//! |---|---|---|
//! | OSU | one average of many calls for each size | one run of the program |
//! | IMB | the same | the same |
//! | ReproMPI | every call | the same |
//! | hyperfine (feature `json`) | the wall time of a run | every run of a command |
//!
//! OSU and IMB print averages over calls and ranks: `avg` is what both always print and what their users quote. Other columns,
//! such as `max`, the average of the slowest rank, can be [chosen](ImportSettings::column); all are kept as figures. How many
//! calls an average is of is the fact [`AVERAGES`]. OSU's latency between two ranks is half of a round trip, and from its
//! bandwidth follows the time per message.
//!
//! If a file has the output of several runs, the n-th output of an operation belongs to the n-th launch. Lines before
//! and after tables are ignored, since launchers print there; those between rows are errors.
//!
//! A format is one file that reads lines, as `import/osu.rs` does, and gives the rows of its tables to a collector of launches.

mod collector;
mod format;
#[cfg(feature = "json")]
mod hyperfine;
mod imb;
mod imported;
mod lines;
mod osu;
mod reader;
mod reprompi;
mod table;
#[cfg(test)]
mod tests;

pub use format::ImportFormat;
pub use imported::{AVERAGES, ImportSettings, Imported, ImportedLaunch};
pub use reader::import;
