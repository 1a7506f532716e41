//! Measures parallel operations on one global clock, and says what the measurements mean.
//!
//! A [`Method`] says how an [`Operation`] is measured: by which [`Scheme`] observations are made, when there are enough of
//! them ([`Stopping`]), and what is made of them ([`Processing`]). A [`Preset`] is the method of a whole benchmark suite.
//! The ranks measure on a [`Stage`]: a communicator, a clock and what it shows, and how they come together.
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
//!     ByMessages, Method, OwnKind, OwnOperation, Processing, RoundTime, Scheme, Stage, Stopping, Time,
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
//!     let stage = Stage { comm, together: &ByMessages(comm), clock: &clock, time: Time::Global(model) };
//!     let mut allreduce = OwnOperation { kind: OwnKind::Allreduce, comm };
//!     method.measure_blocking(&stage, &mut allreduce)
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

mod aligned;
mod barrier;
mod cache;
mod drift;
mod imbalance;
mod measurement;
#[cfg(feature = "mpi")]
mod mpi;
mod operation;
mod own;
mod preset;
mod processing;
mod scheme;
mod shuffle;
mod sizes;
mod stage;
mod stopping;

pub use aligned::{AlignedBytes, Alignment, AlignmentError, NoMemory};
pub use barrier::{Barrier, BarrierError};
pub use cache::{Cache, CacheError, CacheState, Walk};
pub use drift::{DriftError, Explained, Interpolated, OffsetSeries, Round, Watch, WindowFit};
pub use imbalance::{BarrierOperation, Imbalance, ImbalanceError};
pub use measurement::{Measured, Method};
#[cfg(feature = "mpi")]
pub use mpi::{
    Datatype, MpiGroup, MpiOperation, OperationError, OperationKind, OperationSettings, Reduction,
    Root, UnknownName, WrongResult,
};
pub use operation::{ByMessages, Operation, Together};
pub use own::{OwnKind, OwnKindError, OwnOperation};
pub use preset::{Preset, PresetError};
pub use processing::{Figure, PerRank, Processing, ProcessingError};
pub use scheme::{EachCall, RoundTime, Scheme, Series, Windows};
pub use shuffle::shuffle;
pub use sizes::{Sizes, SizesError};
pub use stage::{MeasureError, Stage, Time};
pub use stopping::{Decay, Ended, Progress, Stopping, StoppingError};
