//! OTF2 archives: traces of Score-P and compatible tools.
//!
//! All files are read and written with [`downbeat_otf2`], location by location.
//! Communicators, messages, collective operations and threads become those of a
//! [`Trace`](crate::Trace); ticks of the clock become nanoseconds. A corrected trace is
//! written as a copy of the archive in which only clock offsets differ: readers of OTF2
//! interpolate these and add them to the times. Where offsets do not suffice, events are
//! rewritten with new times. An archive that does not fit in memory is read into a
//! builder with an [`ArrayStore`](crate::ArrayStore) in a file. [`create()`] makes an
//! archive of any trace, which is read as the same trace.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use downbeat_clock_core::Duration;
//! use downbeat_trace::formats::otf2::{Archive, ReadOptions, WriteOptions};
//! use downbeat_trace::{ControlledLogicalClock, Latencies};
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let archive = Archive::open(Path::new("scorep-run/traces.otf2"))?;
//! let read = archive.read(&ReadOptions::default())?;
//! let latency = Duration::from_nanos(500);
//! let latencies = Latencies::new(latency, latency, latency).ok_or("a latency is negative")?;
//! let corrected = ControlledLogicalClock::new(latencies).correct(&read.trace)?;
//! let written = archive.write_corrected(&read.trace, &read.origin, corrected.times(), Path::new("corrected"), WriteOptions::default())?;
//! println!("{}", written.anchor.display());
//! # Ok(())
//! # }
//! ```
//!
//! # Mapping of events
//! | of the archive | in the trace |
//! |---|---|
//! | `MPI_Send`, `MPI_Isend` | send, at the time it was posted; the completion of `MPI_Isend` is an internal event |
//! | `MPI_Recv` | receive |
//! | request, completion and cancellation of `MPI_Irecv` | post, completion and cancellation of a receive, by the request |
//! | collective operations | their enter and exit; a member without data neither sends nor receives |
//! | `MPI_Init`, `MPI_Finalize` | barriers of all ranks, by the names of the regions |
//! | request and completion of a non-blocking collective operation | its start and completion, by the request |
//! | RMA collective operations | collective operations of the window; members of a barrier that does not synchronize processes wait for none |
//! | puts, gets, atomic operations and their completions | accesses, which are internal events: both ends are on one location, which keeps its order. The target has no event; counted as [`UnexaminedRelations`]. An archive may state two completions of one access, at its origin and at its target |
//! | creation and begin of a thread, its end and the wait for it | signal and wait, by contingent and sequence count |
//! | release of a lock, and the acquisition with the next number | signal and wait |
//! | fork, join and teams of threads, OpenMP's barriers | the same |
//! | operations that create or free objects, operations on intercommunicators, RMA locks and synchronizations, tasks, non-blocking operations that never complete | internal events; counted as [`UnexaminedRelations`] |
//! | everything else | internal events |
//!
//! [`Archive::for_each_item`] returns the same events as items of a trace file: internal events
//! become enters, leaves, accesses or notes; events of kinds without a note are left out and counted. A region that is
//! also a barrier is entered before the barrier, and left after it. Values of metrics become items of their own, in the units of the metrics.
//!
//! # Archives of traces
//! An archive that [`create()`] makes has the property `DOWNBEAT::EVENTS` in its anchor
//! file. Its events are those of the trace: regions, windows and forks imply no others,
//! and regions named `MPI_Init` are no barriers. Other readers find an ordinary archive;
//! what OTF2 has no record for is stated beside it:
//!
//! | of the trace | in the archive |
//! |---|---|
//! | clock samples | properties `DOWNBEAT::SAMPLES_0`, ... of the location: session, local time since the last sample, change of the offset. A session is also one clock offset, for other readers |
//! | checksums | `DOWNBEAT::CRC32` of the anchor file: the CRC-32 of each other file; `DOWNBEAT::CRC32_ANCHOR`: that of the anchor file without this property. Corrected archives state them, too |
//! | master; negative times | `DOWNBEAT::MASTER`; all times are later by `DOWNBEAT::SHIFT` nanoseconds, properties of the anchor file |
//! | node and process of a location | `DOWNBEAT::NODE` and `DOWNBEAT::PROCESS` of its location group |
//! | signal, wait | `ThreadReleaseLock`, `ThreadAcquireLock` with the next number; the lock is the id, the number that of the pair in its process |
//! | note | `ParameterString` of the parameter `note` |
//! | number of bytes that is unknown | 0, and `DOWNBEAT::UNSIZED` of the anchor file where that is the usual one |
//! | anything else that a record lacks, such as the team of a fork | attribute `DOWNBEAT::EVENT`: the event in a text trace; empty for records that the trace has no event for |
//! | message whose peer is not in its communicator | `ParameterString` of the parameter `event`, with the same text |
//!
//! While the clock offsets of such an archive are those of its samples, times are read as
//! recorded, and [`Archive::sessions`] returns the samples. A correction replaces the
//! clock offsets, so that they are added to the times as those of other archives, and the
//! samples are not used any more. Events of several locations are read in the order of
//! time, definitions in the order of their kinds; threads have the first location of
//! their process as their rank.
//!
//! A non-blocking operation must be completed by the location that started it. Only the
//! completion tells its communicator: the events from its start to its completion are in
//! memory at a time, or, if there are thousands of them, the file is read ahead once.

mod archive;
mod clock_properties;
mod create;
mod definitions;
mod difference;
mod error;
mod exact;
mod instants;
mod integrity;
mod items;
mod offsets;
mod operations;
mod read;
mod records;
mod rewrite;
#[cfg(test)]
mod round_trip;
mod samples;
mod signals;
mod stream;
mod teams;
mod times;
mod unexamined;
mod windows;
mod write;

pub use archive::{Archive, ArchiveLocation, ArchiveTrace, Origin, PartRead, ReadOptions};
pub use create::{NewArchive, create};
pub use difference::first_difference;
pub use error::Otf2Error;
pub use integrity::changed_files;
pub use times::ArchiveTimes;
pub use unexamined::UnexaminedRelations;
pub use write::{ArchiveCopy, WriteOptions, WrittenArchive, check_destination};
