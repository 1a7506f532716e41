//! Trace files: timestamped events of every location, and samples of clock comparisons.
//!
//! A trace is text, `*.dbt`, or binary with the same content, `*.dbtb`.
//!
//! ```text
//! # downbeat trace 2
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
//! crc32 46b2afea
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `location NUMBER NODE PROCESS NAME` | a process with one thread, or a thread that messages are addressed to |
//! | `thread NUMBER LOCATION NAME` | another thread of the process of that location |
//! | `communicator NUMBER LOCATION...` | a communicator, or a team of threads, with its members by their ranks |
//! | `region NUMBER NAME` | a named region of the program |
//! | `master LOCATION` | the location whose clock the others were compared with; default: location 0 |
//! | `sample LOCATION SESSION LOCAL MASTER` | readings of two clocks at one instant, in a session |
//! | `LOCATION TIME enter REGION`, `leave REGION` | enter and leave of a region |
//! | `LOCATION TIME note TEXT` | any other event, which is preserved |
//! | `LOCATION TIME send LOCATION COMMUNICATOR TAG` | send of a message to a location |
//! | `LOCATION TIME receive LOCATION COMMUNICATOR TAG` | receive of a message from a location, or the completion of the receive |
//! | `LOCATION TIME collective COMMUNICATOR` | enter of a collective operation |
//! | `LOCATION TIME collective-end COMMUNICATOR KIND ROOT DATA` | exit of a collective operation; KIND and DATA are described below |
//! | `LOCATION TIME fork TEAM`, `thread-begin TEAM`, `thread-end TEAM`, `join TEAM` | start and end of a team of threads, and of each of its threads |
//! | `end EVENTS` | end of a complete trace, with its number of events |
//! | `crc32 CHECKSUM` | CRC-32 of all bytes before this line |
//!
//! KIND is one of `barrier`, `broadcast`, `scatter`, `gather`, `reduce`, `allreduce`, `allgather`,
//! `alltoall`, `alltoallv`, `reduce_scatter`, `scan` and `exscan`; DATA tells which data the member
//! had: `none`, `sent`, `received` or `both`.
//!
//! Numbers count from 0, in the order of the lines; times are whole nanoseconds, and never decrease
//! on a location.
//! Definitions precede their uses. Lines end with LF or CR LF, and have at most 8 MiB.
//!
//! A trace that is written by hand begins with `# downbeat trace 1`, and ends without a checksum.
//!
//! A trace can be converted to the other format, or for a viewer: see [`perfetto`].
//! `downbeat trace correct` corrects the times, and `downbeat trace convert` converts the result.
//!
//! A [`TraceReader`] and a [`TraceWriter`] have one item at a time in memory; a [`TraceFile`] has
//! the times and dependencies of all events.
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
//! let right = ControlledLogicalClock::new(Latencies::ZERO).correct(&file.trace)?;
//! file.write_corrected(&to, file.format, right.times(), &file.sessions)?;
//!
//! let corrected = text.replace("trace 1", "trace 2").replace("6900", "7010");
//! assert!(std::fs::read_to_string(&to)?.starts_with(&corrected));
//! # std::fs::remove_file(&from)?;
//! # std::fs::remove_file(&to)?;
//! # Ok(())
//! # }
//! ```

mod action;
mod binary;
mod blocks;
mod bytes;
mod checksum;
mod chunk;
mod definitions;
mod difference;
mod file;
mod format;
#[cfg(test)]
mod hostile;
mod index;
mod item;
mod loading;
mod numbers;
pub mod otf2;
pub mod perfetto;
mod reader;
mod requests;
mod sessions;
mod shared;
mod spill;
mod streamed;
mod target;
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
pub use streamed::{StreamedError, StreamedTrace};
pub use writer::TraceWriter;
