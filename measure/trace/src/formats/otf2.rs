//! OTF2 archives: the traces of Score-P, and of all that read and write theirs.
//!
//! Definitions are read with OTF2's own library, events byte by byte, location by location. Communicators, messages,
//! collective operations and threads become those of a [`Trace`](crate::Trace); ticks of the clock
//! become nanoseconds.
//! A corrected trace is written as a copy of the archive, in which only clock offsets differ: readers of OTF2 add these to
//! the times that they read, interpolated. Where that cannot be done, events are rewritten with other times.
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
//! # What becomes of events
//! | of the archive | in the trace |
//! |---|---|
//! | `MPI_Send`, `MPI_Isend` | a send, when it was posted |
//! | `MPI_Recv`, `MPI_Irecv` | a receive, when it was complete |
//! | collective operations | their enter and exit; a member without data neither sends nor receives |
//! | `MPI_Init`, `MPI_Finalize` | barriers of all ranks, by the names of the regions |
//! | fork, join and teams of threads, OpenMP's barriers | the same |
//! | non-blocking collective operations, those that make or free something, on intercommunicators | internal events |
//! | enter and leave, requests | internal events |
//! | everything else | none, but it is moved as what is around it |
//!
//! [`Archive::for_each_item`] hands over the same as a file would say it: what is internal is an enter, a leave or a note,
//! and everything else is left out and counted. Where a region is a barrier, too, it is entered before that, and left after
//! it. How long messages are is in no such file.
//!
//! Messages of one sender, receiver, communicator and tag are matched in the order in which their receives were complete,
//! which need not be that in which they were posted. What follows from that is true nevertheless, as messages do not
//! overtake each other; it may be less than what could be known.

mod anchor;
mod archive;
mod chunks;
mod clock;
mod definitions;
mod difference;
mod error;
mod event_file;
mod events;
mod failures;
mod ffi;
mod files;
mod globals;
mod handover;
mod items;
mod offsets;
mod part;
mod reader;
mod record;
mod rewrite;
mod sink;
mod stream;
mod teams;
mod write;

pub use archive::{Archive, ArchiveLocation, ArchiveTrace, Origin, ReadOptions};
pub use difference::first_difference;
pub use error::Otf2Error;
pub use write::{ArchiveCopy, WriteOptions, WrittenArchive, check_destination};
