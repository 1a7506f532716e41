//! Measures parallel operations on one global clock, and says what the measurements mean.
//!
//! A [`Method`] says how an [`Operation`] is measured: by which [`Scheme`] observations are made, when there are enough of
//! them ([`Stopping`]), and what is made of them ([`Processing`]). A [`Preset`] is the method of a whole benchmark suite.
//! The ranks measure on a [`MeasureContext`]: a communicator, a clock and what it shows, and how they come together.
//!
//! | scheme | what it does | what spoils it |
//! |---|---|---|
//! | [`EachCall`] (MS1) | a barrier before each call, timed by the ranks' own clocks | ranks leave the barrier one after the other, and wait for each other in the call |
//! | [`Series`] (MS2, MS3) | many calls timed together, or calls and barriers | calls overlap; or the barriers are timed, too |
//! | [`Windows`] (MS4) | calls begin at times that were agreed on, by one clock | a call that is too long spoils those that follow |
//! | [`RoundTime`] | the same, but each start is told shortly before, and the ranks agree afterwards whether all were in time | a clock that is wrong |
//!
//! What is spoiled is marked, counted and left out, never dropped in silence.
//!
//! # Example
//! Two threads measure how long it takes them to agree on a sum. They read one counter, which so is one clock; where ranks
//! have clocks of their own, an algorithm of [`downbeat_sync`] makes one of them.
//!
//! ```
//! use downbeat_clock_core::{Clock, ClockModel, Timestamp};
//! use downbeat_measure::{
//!     BuiltinKind, BuiltinOperation, ClockBasis, MeasureContext, MessageCoordinator, Method, Processing, RoundTime,
//!     Scheme, Stopping,
//! };
//! use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
//! use downbeat_timers::{SystemClock, SystemClockId};
//!
//! let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
//! let model = ClockModel::through(clock.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
//! let method = Method {
//!     warm_up: 10,
//!     scheme: Scheme::RoundTime(RoundTime::default()),
//!     stopping: Stopping::Count { most: 200 },
//!     processing: Processing::Median,
//!     root: 0,
//! };
//! let found = ThreadCluster::new(2).run(|comm| {
//!     let clock_basis = ClockBasis::Global(model);
//!     let context = MeasureContext { comm, coordinator: &MessageCoordinator(comm), clock: &clock, clock_basis };
//!     let mut allreduce = BuiltinOperation { kind: BuiltinKind::Allreduce, comm };
//!     method.measure_blocking(&context, &mut allreduce)
//! })?;
//! // Rank 0 has the result.
//! for measured in found.into_iter().flatten().flatten() {
//!     let median = &measured.figures[0];
//!     println!("{}: {} ns, of {} observations", median.name, median.nanos, measured.observations.len());
//!     # assert_eq!(measured.observations.len(), 200);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Over MPI, with the feature `mpi`, an `MpiOperation` is called instead: any collective operation of the library.
//!
//! # Caveats
//! * Clocks are as good as their synchronization: an error of a global clock is in every run-time that it measures.
//! * Who waits for a common start spins: with more ranks than cores, most starts are missed.
//!
//! # What this crate does not do yet
//! Its operations are those of MPI libraries, with the feature `mpi`, and few of its own. It compares two experiments at a
//! time, without pairing, and by their averages only; Shapiro and Wilk's is its only test of normality.
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]

#[cfg(any(test, feature = "mpi"))]
mod aligned;
mod barrier;
mod builtin;
#[cfg(any(test, feature = "mpi"))]
mod cache;
mod context;
mod drift;
mod error;
mod imbalance;
mod measurement;
#[cfg(feature = "mpi")]
mod mpi;
mod names;
mod operation;
mod preset;
mod processing;
mod scheme;
mod stopping;

#[cfg(any(test, feature = "mpi"))]
pub use aligned::{Alignment, BufferError};
pub use barrier::Barrier;
pub use builtin::{BuiltinKind, BuiltinOperation};
#[cfg(any(test, feature = "mpi"))]
pub use cache::CacheState;
pub use context::{ClockBasis, MeasureContext};
pub use drift::{
    DriftRound, DriftWatch, FitQuality, InterpolationResidual, OffsetSeries, WindowFit,
};
pub use error::{MeasureError, MethodError};
pub use imbalance::{BarrierOperation, Imbalance};
pub use measurement::{Measurement, Method};
#[cfg(feature = "mpi")]
pub use mpi::{
    Datatype, MpiGroup, MpiOperation, OperationError, OperationKind, OperationSettings, Reduction,
    Root,
};
pub use operation::{Coordinator, MessageCoordinator, Operation};
pub use preset::Preset;
pub use processing::{Figure, PerRank, Processing};
pub use scheme::{EachCall, RoundTime, Scheme, Series, Windows};
pub use stopping::{Decay, StopReason, Stopping, StoppingProgress};
