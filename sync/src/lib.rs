#![doc = include_str!("../README.md")]
//!
//! # Concepts
//! - [`Comm`] is the communicator of one rank, which sends small messages, [`Payload`]s. Algorithms
//!   are `async` and generic over it, so the same source runs on a real machine and in a simulator;
//!   [`block_on_ready`] makes them blocking calls on real machines.
//! - [`ThreadComm`] is the backend for ranks that are threads of one process. A [`ThreadCluster`]
//!   starts and pins them. Each pair of threads shares two mailboxes of one cache line each.
//! - `MpiComm`, with the feature `mpi`, is the backend for ranks that are processes of an MPI
//!   program. It duplicates its communicator, finds the ranks that share a node, and returns the
//!   failures of MPI as errors.
//! - [`SimComm`] is the backend for simulated ranks: a [`SimCluster`] simulates up to millions of
//!   them on one thread or several, in virtual time, with a [`Network`] and [`Clocks`] whose true
//!   behaviour is known.
//! - [`OffsetClient`] measures the offset of this rank's clock to another's, which [`answer`]s, by
//!   any [`OffsetAlgorithm`].
//! - An [`Algorithm`] synchronizes the clocks of all ranks and bounds their errors; an [`AccuracyCheck`] measures how far
//!   apart they are afterwards, and a [`TreeOffset`] does so for all ranks in logarithmic time.
//! - [`SessionLimits`] exchange messages with all ranks while a program runs, so that the past can be interpolated afterwards.
//! - [`collective`] has the collective operations that this needs: reductions, broadcasts and
//!   barriers.
//!
//! Clocks, time and offsets are defined in [`downbeat_clock_core`]. Any of its clocks can be used:
//! this crate reads no clock by itself.
//!
//! # Example: bounds of errors
//! Three threads read one counter of `downbeat-timers`, start from different local times, and agree on the time of rank
//! 0.
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
//!     assert!(error.abs() <= rank.bound.at_time(rank.model.apply(now)));
//!     println!("{error}, at most {}", rank.bound.half_width());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Caveats
//! - Threads that share a core, or compete with other load, measure their offset only while both
//!   run at once. The stated bound shows the remaining uncertainty.
//! - The [bound](Synchronized::bound) of a global clock holds as long as no clock drifts by more than is
//!   [declared](LocalClock::max_drift), and none steps after the closing exchange.
//! - SKaMPI's interval is certain only for clocks that do not drift during the measurement, and
//!   whose readings are ordered. Use clocks with ordered readings: see
//!   [`ReadOrdering`](downbeat_clock_core::ReadOrdering).
//! - Mailboxes take 128 bytes for every ordered pair of threads.
//! - There are no timeouts: ranks wait for a rank that neither answers nor leaves. Over MPI they
//!   also wait for one that leaves, until MPI ends the program: ranks that could fail on their own,
//!   for example because one has no usable counter, should agree on success before they
//!   synchronize. Only a simulated cluster detects deadlocks.
//! - Over MPI, all ranks should drop a communicator: the standard allows MPI to wait for that. A
//!   split is as slow as that of MPI, which is far slower than a message.
//! - Over MPI, more ranks than cores take turns, and every message then waits for a turn:
//!   milliseconds where the library does not yield.
//! - A simulated network has links and network cards, but no topology: messages between different
//!   pairs of nodes share nothing else. Its parameters are plausible, not those of your machine.
//! - A line is only as good as the time it spans: one learned in 15 ms is off by microseconds ten
//!   seconds later.
//!
//! # What this crate does not do
//! It does not synchronize again by itself: a program calls a [`Keeper`](keep::Keeper). It reads no files and no clocks and pins no
//! threads: `downbeat-timers` does.
//!
//! [`AccuracyCheck`]: check::AccuracyCheck
//! [`Clocks`]: sim::Clocks
//! [`Network`]: sim::Network
//! [`OffsetClient`]: pair::OffsetClient
//! [`Payload`]: payload::Payload
//! [`SessionLimits`]: timesync::SessionLimits
//! [`SimCluster`]: sim::SimCluster
//! [`SimComm`]: sim::SimComm
//! [`TreeOffset`]: check::TreeOffset
//! [`answer`]: pair::answer
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]

pub mod algorithm;
pub mod check;
pub mod collective;
mod comm;
mod error;
pub mod harmonize;
pub mod keep;
pub mod line;
#[cfg(feature = "mpi")]
#[expect(unsafe_code, reason = "MPI is a C library")]
mod mpi;
mod offset;
pub mod pair;
pub mod payload;
mod place;
mod quality;
mod ready;
mod scramble;
#[cfg(feature = "serde")]
mod serialize;
mod session;
pub mod sim;
mod split;
mod stable_hash;
mod stated_error;
mod thread;
mod thread_cluster;
pub mod timesync;

pub use algorithm::{Algorithm, LocalClock, Synchronized};
pub use comm::{Comm, CommError, NodeComms};
#[doc(no_inline)]
pub use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, Global, Local, TickRate, Ticks, Timestamp,
};
pub use error::{ClusterError, LabelError, SyncError, agree_on_reason};
#[cfg(feature = "mpi")]
pub use mpi::{MpiComm, MpiError};
pub use offset::OffsetAlgorithm;
pub use place::{NodePlace, NodePlaces, PlaceError, PlaceLevel, RankPlacement, node_identity};
pub use quality::{FarEdge, Quality};
pub use ready::block_on_ready;
pub use stable_hash::StableHasher;
pub use stated_error::StatedError;
pub use thread::ThreadComm;
pub use thread_cluster::ThreadCluster;

/// Items shared by Downbeat's own crates and tests; not covered by semantic versioning.
#[doc(hidden)]
pub mod internal {
    pub use crate::place::boot_id;
    pub use crate::scramble::{SPLITMIX_STEP, scramble};
    pub use crate::sim::{NextWindow, NodeClock, PartExchange, WindowReport, exponential, require};
    pub use crate::thread::{Departure, Mailbox, MailboxBlocked, Sleeper};
}
