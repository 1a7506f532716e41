//! Traces of programs in files: what every location did when, and what its clock showed when it was compared with
//! others.
//!
//! A trace is text, `*.dbt`, or the same as bytes, `*.dbtb`.
//!
//! ```text
//! # downbeat trace 1
//! location 0 0 0 rank 0
//! location 1 1 1 rank 1
//! communicator 0 0 1
//! region 0 MPI_Send
//! sample 1 0 5000 5400
//! 0 7000 enter 0
//! 0 7010 send 1 0 42
//! 0 7050 leave 0
//! 1 6900 receive 0 0 42
//! end 4
//! ```
//!
//! | line | what it says |
//! |---|---|
//! | `location NUMBER NODE PROCESS NAME` | a process with one thread, or a thread that messages are addressed to |
//! | `thread NUMBER LOCATION NAME` | another thread of the process of that location |
//! | `communicator NUMBER LOCATION...` | a communicator, or a team of threads, with its members by their ranks |
//! | `region NUMBER NAME` | a part of the program |
//! | `master LOCATION` | whose clock the others were compared with; location 0, if nothing is said |
//! | `sample LOCATION SESSION LOCAL MASTER` | what two clocks showed at one instant, in which session |
//! | `LOCATION TIME enter REGION`, `leave REGION` | a region is entered, and left |
//! | `LOCATION TIME note TEXT` | anything else, which is carried along |
//! | `LOCATION TIME send LOCATION COMMUNICATOR TAG` | a message sets out |
//! | `LOCATION TIME receive LOCATION COMMUNICATOR TAG` | it is there, or was found to be |
//! | `LOCATION TIME collective COMMUNICATOR` | a collective operation is entered |
//! | `LOCATION TIME collective-end COMMUNICATOR KIND ROOT DATA` | it is left: a KIND such as `allreduce` (see below) |
//! | `LOCATION TIME fork TEAM`, `thread-begin TEAM`, `thread-end TEAM`, `join TEAM` | threads |
//! | `end EVENTS` | the trace is complete |
//!
//! KIND is one of `barrier`, `broadcast`, `scatter`, `gather`, `reduce`, `allreduce`, `allgather`, `alltoall`,
//! `alltoallv`, `reduce_scatter`, `scan` and `exscan`; DATA is what the member had: `none`, `sent`, `received` or `both`.
//!
//! Numbers count from 0, in the order of the lines; times are whole nanoseconds, and never decrease on a location.
//! What is named comes before what names it. Lines may also end as on Windows, and have at most eight mebibytes.
//!
//! What is read can be written in the other format, or for a viewer: see [`perfetto`]. `downbeat trace correct` makes times
//! true, and `downbeat trace convert` shows what came of it.
//!
//! A [`TraceReader`] and a [`TraceWriter`] have one thing at a time in memory; a [`TraceFile`] has the times of all
//! events, and what a correction needs to know of them.
//!
//! ```
//! use downbeat_trace::formats::TraceFile;
//! use downbeat_trace::{ControlledLogicalClock, Latencies, Matching};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let folder = std::env::temp_dir();
//! # let [from, to] = ["in", "out"].map(|name| folder.join(format!("downbeat-{}-{name}.dbt", std::process::id())));
//! let text = "# downbeat trace 1\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
//!             0 7010 send 1 0 42\n1 6900 receive 0 0 42\nend 2\n";
//! std::fs::write(&from, text)?;
//!
//! let file = TraceFile::read(&from, Matching::default())?;
//! let corrected = ControlledLogicalClock::new(Latencies::ZERO).correct(&file.trace)?;
//! file.write_corrected(&to, file.format, corrected.times(), &file.sessions)?;
//!
//! assert_eq!(std::fs::read_to_string(&to)?, text.replace("6900", "7010"));
//! # std::fs::remove_file(&from)?;
//! # std::fs::remove_file(&to)?;
//! # Ok(())
//! # }
//! ```

mod action;
mod binary;
mod blocks;
mod bytes;
mod chunk;
mod definitions;
mod difference;
mod file;
mod format;
#[cfg(test)]
mod hostile;
mod index;
mod item;
mod numbers;
#[cfg(feature = "otf2")]
pub mod otf2;
pub mod perfetto;
mod reader;
mod sessions;
mod shared;
mod spill;
mod streamed;
#[cfg(test)]
mod tests;
mod text;
mod writer;

pub use difference::first_difference;
pub use file::{TraceFile, Unread, write_corrected};
pub use format::TraceFormat;
pub use item::{Item, What};
pub use reader::TraceReader;
pub use sessions::Sessions;
pub use streamed::{StreamedCorrection, StreamedError, StreamedTrace};
pub use writer::TraceWriter;
