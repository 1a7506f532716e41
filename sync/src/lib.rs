//! The clocks of parallel ranks: how ranks talk, and by how much their clocks differ.
//!
//! - [`Comm`] is one rank's place among others, and sends small messages, [`Payload`]s. Algorithms are `async` and
//!   generic over it, so one source runs on a real machine and in a simulator; [`block_on_ready`] makes a blocking
//!   call of it wherever ranks are real.
//! - [`ThreadComm`] is the backend for ranks that are threads of one process. A [`ThreadCluster`] starts and pins them.
//!   It is made of a [`Mailbox`] for every two ranks and a [`Sleeper`] for each.
//! - `MpiComm`, with the feature `mpi`, is the backend for ranks that are processes of an MPI program. It has a
//!   communicator of its own, finds the ranks that share a node, and returns what MPI reports as an error.
//! - [`SimComm`] is the backend for ranks that do not exist: a [`SimCluster`] simulates a million of them on one thread, in
//!   virtual time, with a [`Network`] and [`Clocks`] of which the truth is known.
//! - [`OffsetClient`] measures by how much this rank's clock is ahead of another's, which [`answer`]s, by any
//!   [`OffsetAlgorithm`].
//! - An [`Algorithm`] makes one clock of the clocks of all ranks; an [`AccuracyCheck`] measures how far apart they are
//!   afterwards.
//! - [`collective`] has what ranks do together besides: agree, and tell.
//!
//! What clocks, time and offsets are is said in [`downbeat_clock_core`]. Any of its clocks will do: this crate reads
//! none itself.
//!
//! # Example
//! Three threads read one counter, each by its own idea of what time it is, and agree on that of the first.
//!
//! ```
//! use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Local, Timestamp};
//! use downbeat_sync::{Algorithm, Comm, SyncError, ThreadCluster, LocalClock};
//! use downbeat_timers::{SystemClock, SystemClockId};
//!
//! let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
//! let start = clock.ticks();
//! let algorithm: Algorithm = "hca3/10/skampi/20".parse()?;
//!
//! let found = ThreadCluster::new(3).run(|comm| {
//!     let belief = Timestamp::ORIGIN + Duration::from_secs(comm.rank().into());
//!     let local = ClockModel::<Counter, Local>::through(start, belief, SystemClock::RATE)?;
//!     algorithm.synchronize_blocking(&LocalClock::new(&clock, local), comm)
//! })?;
//!
//! let ranks: Vec<_> = found.into_iter().collect::<Result<_, SyncError>>()?;
//! let now = clock.ticks();
//! for rank in &ranks[1..] {
//!     let error = rank.model.apply(now) - ranks[0].model.apply(now);
//!     assert!(error.abs() < Duration::from_secs(1));
//!     println!("{error}, each offset certain to {:?}", rank.quality.half_width);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Caveats
//! - Threads that share a core, or run beside other load, measure their offset only while both run at once. SKaMPI's
//!   interval says how good that was; the other algorithms do not say.
//! - SKaMPI's interval is certain only for clocks that do not drift during the measurement, and whose readings are
//!   ordered. Use clocks that say so: see [`ReadOrdering`](downbeat_clock_core::ReadOrdering).
//! - Mailboxes take 128 bytes for every ordered pair of threads.
//! - There are no time limits: a rank that neither answers nor leaves is waited for. Over MPI one that leaves is, too,
//!   until MPI ends the program: so ranks that could fail on their own, as when one finds no counter, had better tell each
//!   other before they synchronize. Only a simulated cluster finds out that all wait for each other.
//! - Over MPI, all ranks should drop a communicator: the standard lets MPI wait for that. Splitting one is as slow as MPI
//!   does it, which is far slower than a message.
//! - More ranks than cores over MPI take turns on them, and every message then waits for a turn: milliseconds where the
//!   library does not yield.
//! - A simulated network has links and cards, but no topology: messages between two pairs of nodes meet nowhere else.
//!   Its parameters are plausible, not those of your machine.
//! - A line is only as good as the time it spans: one learned in 15 ms is off by microseconds ten seconds later.
//!
//! # What this crate does not do
//! Not yet: synchronize again while the program runs. It reads no file, and
//! no clock and pins no thread: `downbeat-timers` does.
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]

mod algorithm;
mod check;
pub mod collective;
mod comm;
mod error;
mod line;
#[cfg(feature = "mpi")]
#[expect(unsafe_code, reason = "MPI is a C library")]
mod mpi;
mod offset;
mod pair;
mod payload;
mod ready;
mod scramble;
mod sim;
mod thread;

pub use algorithm::{
    Algorithm, ClockPropSync, FlatAlgorithm, Hca, Hca2, Hca3, Hca3Offset, Hierarchy, Jk,
    LocalClock, NbcBench, RankPlacement, Skampi, Synchronized,
};
pub use check::{AccuracyCheck, RankOffset, RankSample};
pub use comm::{Comm, CommError};
pub use error::{ClusterError, LabelError, SyncError};
pub use line::{LearnedModel, LineFit, Quality};
#[cfg(feature = "mpi")]
pub use mpi::{MpiComm, MpiError};
pub use offset::OffsetAlgorithm;
pub use pair::{OffsetClient, answer, answer_blocking};
pub use payload::{MAX_WORDS, Payload, Words};
pub use ready::block_on_ready;
pub use sim::{
    Bursts, Card, Clocks, DelayTail, Drift, DriftWalk, Network, NetworkLink, SimClock, SimCluster,
    SimComm, Simulated, VirtualTime,
};
pub use thread::{ThreadCluster, ThreadComm};

/// Items shared by Downbeat's own crates and tests; not covered by semantic versioning.
#[doc(hidden)]
pub mod internal {
    pub use crate::scramble::{SPLITMIX_STEP, scramble};
    pub use crate::sim::{NodeClock, exponential, require, require_non_negative};
    pub use crate::thread::{Departure, Mailbox, MailboxBlocked, Sleeper};
}
