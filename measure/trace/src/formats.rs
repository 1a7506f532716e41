//! Trace files: timestamped events of every location, and samples of clock comparisons.
//!
//! A trace file is text, `*.dbt`, for tests, examples and people; programs write archives of
//! OTF2: see [`otf2`].
//!
//! ```text
//! # downbeat trace 1
//! location 0 0 0 rank 0
//! location 1 1 1 rank 1
//! communicator 0 0 1
//! region 0 MPI_Send
//! sample 1 0 5000 5400
//! 0 7000 enter 0
//! 0 7010 send 1 0 42 800
//! 0 7050 leave 0
//! 1 6900 receive 0 0 42 800
//! end 4
//! crc32 d5372e8b
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
//! | `LOCATION TIME send LOCATION COMMUNICATOR TAG [BYTES]` | send of a message to a location |
//! | `LOCATION TIME send-start LOCATION COMMUNICATOR TAG REQUEST [BYTES]` | start of a non-blocking send |
//! | `LOCATION TIME send-complete REQUEST` | its completion |
//! | `LOCATION TIME receive LOCATION COMMUNICATOR TAG [BYTES]` | receive of a message from a location |
//! | `LOCATION TIME receive-post REQUEST` | start of a non-blocking or persistent receive |
//! | `LOCATION TIME receive-complete LOCATION COMMUNICATOR TAG REQUEST [BYTES]` | its completion, with the message that was received |
//! | `LOCATION TIME receive-cancel REQUEST` | its end without a message |
//! | `LOCATION TIME collective COMMUNICATOR` | enter of a collective operation |
//! | `LOCATION TIME collective-end COMMUNICATOR KIND ROOT DATA [BYTES]` | exit of a collective operation; KIND and DATA are described below |
//! | `LOCATION TIME collective-start COMMUNICATOR REQUEST` | start of a non-blocking collective operation |
//! | `LOCATION TIME collective-complete COMMUNICATOR KIND ROOT DATA REQUEST [BYTES]` | its completion |
//! | `LOCATION TIME put LOCATION COMMUNICATOR REQUEST [BYTES]`, `get ...`, `atomic ...` | issue of a one-sided access (RMA) to the memory of a location, in the communicator of its window |
//! | `LOCATION TIME access-complete COMMUNICATOR REQUEST` | the access with this REQUEST is known to be complete at its origin |
//! | `LOCATION TIME signal ID` | something that one event of the process waits for: a thread is created or ends, a lock is released, work is given to a device |
//! | `LOCATION TIME wait ID` | the end of that wait: the thread begins or is joined, the lock is acquired, the work is begun |
//! | `LOCATION TIME fork TEAM`, `thread-begin TEAM`, `thread-end TEAM`, `join TEAM` | start and end of a team of threads, and of each of its threads |
//! | `end EVENTS` | end of a complete trace, with its number of events |
//! | `crc32 CHECKSUM` | CRC-32 of all bytes before this line |
//!
//! KIND is one of `barrier`, `broadcast`, `scatter`, `gather`, `reduce`, `allreduce`, `allgather`,
//! `alltoall`, `alltoallv`, `reduce_scatter`, `scan` and `exscan`; DATA tells which data the member
//! had: `none`, `sent`, `received` or `both`.
//!
//! BYTES is the length of a message or of an access, or the amount of data that the member contributed to
//! a collective operation, if it is known.
//!
//! REQUEST and ID are any numbers from 0 to 2^64 - 1; a process can use them again after the
//! completion or the wait.
//!
//! An event must not precede another one where that is its cause:
//!
//! | event | must not precede |
//! |---|---|
//! | receive, or its completion | the send. The messages of a sender, receiver, communicator and tag do not overtake each other: the first one belongs to the receive that was posted first, whichever completes first |
//! | exit or completion of a collective operation | the enters or starts of those members whose data it waits for, by the kind: the root's, all, or those of lower ranks |
//! | begin of a thread, join | the fork; the ends of the threads |
//! | wait | the signal with the same ID |
//!
//! The first enter or start of a member in a communicator belongs to its first operation, the second
//! one to the next, and so on. An exit ends the first blocking operation that was not left, a
//! completion the operation that was started with its REQUEST.
//!
//! An access gives no constraint on times: no call of its target has to do with it. Synchronizations of a window are
//! collective operations and messages in its communicator, which has the members of the one that it was made
//! from.
//!
//! Numbers count from 0, in the order of the lines; times are whole nanoseconds, and never decrease
//! on a location.
//! Definitions precede their uses. Lines end with LF or CR LF, and have at most 8 MiB.
//!
//! A trace that is written by hand begins with `# downbeat trace 1 without checksum`, and has no line
//! `crc32`; any other trace is refused without its checksum.
//!
//! A trace can be converted to an archive, or for a viewer: see [`perfetto`].
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
//! let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
//!             0 7010 send 1 0 42\n1 6900 receive 0 0 42\nend 2\n";
//! std::fs::write(&from, text)?;
//!
//! let (trace, file) = TraceFile::read(&from, Matching::default())?;
//! let right = ControlledLogicalClock::new(Latencies::ZERO).correct(&trace)?;
//! file.write_corrected(&to, right.times(), &file.sessions)?;
//!
//! let corrected = text.replace(" without checksum", "").replace("6900", "7010");
//! assert!(std::fs::read_to_string(&to)?.starts_with(&corrected));
//! # std::fs::remove_file(&from)?;
//! # std::fs::remove_file(&to)?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "json")]
pub mod chrome;
mod definitions;
mod difference;
mod file;
#[cfg(test)]
mod hostile;
mod item;
mod merge;
pub mod otf2;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
mod reader;
mod sessions;
mod shared;
mod spill;
#[cfg(test)]
mod tests;
mod text;
mod writer;

pub use difference::first_difference;
pub use file::{TraceFile, UnreadableFile};
pub use item::Item;
pub use merge::MergedItems;
pub use reader::TraceReader;
pub use sessions::Sessions;
pub use writer::TraceWriter;
