//! OTF2 archives: traces of Score-P and compatible tools.
//!
//! All files are read and written with [`downbeat_otf2`], location by location.
//! Communicators, messages, collective operations and threads become those of a
//! [`Trace`](crate::Trace); ticks of the clock become nanoseconds. A corrected trace is
//! written as a copy of the archive in which only clock offsets differ: readers of OTF2
//! interpolate these and add them to the times. Where offsets do not suffice, events are
//! rewritten with new times. An archive that does not fit in memory is read into a
//! builder with an [`ArrayStore`](crate::ArrayStore) in a file. [`create()`] makes an
//! archive of any trace.
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
//! | puts, gets, atomic operations and their completions | accesses, which are internal events: both ends are on one location, which keeps its order. The target has no event; counted as [`Unexamined`]. An archive may state two completions of one access, at its origin and at its target |
//! | creation and begin of a thread, its end and the wait for it | signal and wait, by contingent and sequence count |
//! | release of a lock, and the acquisition with the next number | signal and wait |
//! | fork, join and teams of threads, OpenMP's barriers | the same |
//! | operations that create or free objects, operations on intercommunicators, RMA locks and synchronizations, tasks, non-blocking operations that never complete | internal events; counted as [`Unexamined`] |
//! | everything else | internal events |
//!
//! [`Archive::for_each_item`] returns the same events as items of a trace file: internal events
//! become enters, leaves, accesses or notes; events of kinds without a note are left out and counted. A region that is
//! also a barrier is entered before the barrier, and left after it. Values of metrics become items of their own, in the units of the metrics.
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
mod events;
mod instants;
mod items;
mod offsets;
mod part;
mod rewrite;
mod sink;
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
pub use unexamined::Unexamined;
pub use write::{ArchiveCopy, WriteOptions, WrittenArchive, check_destination};
