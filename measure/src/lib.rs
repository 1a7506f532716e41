#![doc = include_str!("../README.md")]
//!
//! # Concepts
//! A [`Method`] consists of a [`Scheme`], which makes observations of an [`Operation`], a rule when there are enough of
//! them ([`Stopping`]), and the [`Processing`] of the observations. A [`Preset`] is the method of a benchmark suite. Each
//! rank measures in a [`MeasureContext`]: a communicator, a [`Coordinator`] and a clock.
//!
//! | scheme | observations | sources of error |
//! |---|---|---|
//! | [`EachCall`] (MS1) | a barrier before each call, timed by local clocks | ranks leave the barrier at different times, and wait for each other in the call |
//! | [`Series`] (MS2, MS3) | many calls timed together, or calls and barriers | calls overlap; or the barriers are timed, too |
//! | [`Windows`] (MS4) | calls begin at agreed times by the global clock | a call that is too long invalidates the next ones |
//! | [`RoundTime`] | each start is announced shortly before, and the ranks agree afterwards whether all were in time | an inaccurate clock |
//! | [`RoundGrid`] | each start is the next point of a grid, which is agreed once for many calls; the ranks compare their points afterwards | an inaccurate clock |
//!
//! Invalid observations are marked, counted and left out of the results, never silently dropped.
//!
//! Clocks drift apart while they are used. A [`RenewableClock`] is checked several times a second during a measurement, and
//! synchronized again when the clocks of two ranks differ by 2 % of the median run-time more than after their synchronization,
//! and at least by 2 ns; [`ClockChecks`] has what was found. The observations since the last good check are then marked as
//! drifted. Where even 10 ms after a synchronization, or the time that one takes, are too long for that, the drift is accepted
//! and stated.
//!
//! With the feature `mpi`, an `MpiOperation` measures any collective operation of the MPI library.
//!
//! # Caveats
//! * The error of the global clock is part of every run-time that it measures. Checks find its growth; the error that a
//!   synchronization leaves, because messages take longer in one direction than in the other, is stated as an upper limit only
//!   ([`ClockChecks::offset`]).
//! * Ranks busy-wait for a common start: with more ranks than cores, most starts are missed.
//!
//! # Limitations
//! Besides the operations of MPI libraries, with the feature `mpi`, there are only a few built-in operations. Others implement
//! [`Operation`], or are in shared libraries, which `PlugIn` loads.
//!
//! [`EachCall`]: scheme::EachCall
//! [`Processing`]: processing::Processing
//! [`RoundGrid`]: scheme::RoundGrid
//! [`RoundTime`]: scheme::RoundTime
//! [`Scheme`]: scheme::Scheme
//! [`Series`]: scheme::Series
//! [`Stopping`]: stopping::Stopping
//! [`Windows`]: scheme::Windows
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]

#[cfg(any(test, feature = "mpi"))]
mod aligned;
mod barrier;
mod builtin;
#[cfg(any(test, feature = "mpi"))]
mod cache;
mod clock_check;
pub mod collection;
mod context;
pub mod drift;
mod error;
mod global_clock;
pub mod imbalance;
mod measurement;
mod method;
#[cfg(feature = "mpi")]
pub mod mpi;
mod names;
mod operation;
mod prepared_barrier;
mod preset;
pub mod processing;
pub mod scheme;
pub mod stopping;
mod thinning;

#[cfg(any(test, feature = "mpi"))]
pub use aligned::{Alignment, BufferError};
pub use barrier::Barrier;
pub use builtin::{BuiltinKind, BuiltinOperation};
#[cfg(any(test, feature = "mpi"))]
pub use cache::CacheState;
pub use clock_check::ClockChecks;
pub use context::{ClockBasis, MeasureContext};
#[doc(no_inline)]
pub use downbeat_clock_core::{
    Clock, ClockModel, Duration, Global, ReadOrdering, TickRate, Ticks, Timestamp,
};
#[doc(no_inline)]
pub use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
pub use error::{MeasureError, MethodError};
pub use global_clock::RenewableClock;
pub use measurement::Measurement;
pub use method::Method;
pub use operation::{Coordinator, MessageCoordinator, Operation};
pub use preset::Preset;
