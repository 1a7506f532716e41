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
//! # Comparing two experiments
//! An experiment is several launches of a program, as launches differ by more than their calls explain; each comes to
//! one average, and two experiments are compared by these.
//!
//! ```
//! use downbeat_measure::{Averages, Comparison, Confidence, RankMethod, Sample, stars};
//!
//! // The launches' medians and means, in microseconds, of an operation in two MPI libraries.
//! let (mut a_medians, mut a_means) = ([10.1, 10.4, 10.2, 10.6, 10.3], [10.4, 10.7, 10.6, 11.2, 10.5]);
//! let (mut b_medians, mut b_means) = ([10.9, 11.3, 11.0, 10.8, 11.1], [11.3, 11.6, 11.4, 11.0, 11.5]);
//! let a = Averages { medians: Sample::new(&mut a_medians)?, means: Sample::new(&mut a_means)? };
//! let b = Averages { medians: Sample::new(&mut b_medians)?, means: Sample::new(&mut b_means)? };
//! let found = Comparison::of(&a, &b, Confidence::USUAL);
//!
//! // All of A's medians are below all of B's: of the 252 orders of ten values, one is like that.
//! assert_eq!(found.mann_whitney.method, RankMethod::Exact);
//! assert_eq!(found.mann_whitney.p.less, 1.0 / 252.0);
//! assert_eq!(stars(found.mann_whitney.p.two_sided), "**");
//! // It is significant; is it large? Some 0.7 us.
//! assert!((found.shift.shift + 0.7).abs() < 1e-9);
//! assert!(!found.means_are_doubtful(0.05));
//!
//! // With more sizes there are more chances to err, so that a p counts for less.
//! let sizes = [found, found];
//! assert_eq!(Comparison::adjusted(&sizes)[0].less, 2.0 / 252.0);
//! # Ok::<(), downbeat_measure::SampleError>(())
//! ```
//!
//! [`VarianceParts`] says how much of the variance is the launches' and how many of them a mean needs,
//! [`SampleSizeCheck`] how many observations. All figures agree with R's: `wilcox.test`, `t.test`, `shapiro.test`,
//! `p.adjust` and `quantile`.
//!
//! [`analysis`] does all of this for whole experiments, as [`records`] has them: which launches measured what, their
//! averages, two experiments compared in every size, and how far repetitions are apart.
//!
//! [`regions`] times the regions of an application, in each of its threads and ranks.
//!
//! [`trace`] reads and writes what an application did when, so that its times can be corrected afterwards.
//!
//! # Caveats
//! * A test tells whether two experiments differ, not why: what else differed between them is for the record to say.
//! * Launches are taken as independent. Those of one job of a batch system share its nodes.
//! * A difference that is not significant is not shown to be absent: the interval of the shift says what it may be.
//! * Values are finite, but differences of values beyond 1e300, and squares of differences beyond 1e150, overflow.
//!
//! * Clocks are as good as their synchronization: an error of a global clock is in every run-time that it measures.
//! * Who waits for a common start spins: with more ranks than cores, most starts are missed.
//!
//! # What this crate does not do yet
//! Its operations are those of MPI libraries, with the feature `mpi`, and few of its own. It compares two experiments at a
//! time, without pairing, and by their averages only; Shapiro and Wilk's is its only test of normality.
#![deny(unsafe_code)]
#![cfg_attr(not(any(feature = "mpi", feature = "otf2")), forbid(unsafe_code))]

mod aligned;
pub mod analysis;
mod barrier;
mod cache;
mod drift;
mod imbalance;
mod launch;
mod measurement;
#[cfg(feature = "mpi")]
mod mpi;
mod observation;
mod observations;
mod operation;
mod own;
mod preset;
mod processing;
pub mod records;
pub mod regions;
mod scheme;
mod shuffle;
mod sizes;
mod stage;
mod stats;
mod stopping;
pub mod trace;

pub use aligned::{AlignedBytes, Alignment, AlignmentError, NoMemory};
pub use barrier::{Barrier, BarrierError};
pub use cache::{Cache, CacheError, CacheState, Walk};
pub use drift::{DriftError, Explained, Interpolated, OffsetSeries, Round, Watch, WindowFit};
pub use imbalance::{BarrierOperation, Imbalance, ImbalanceError};
pub use launch::{Factors, Group, GroupKey, Launch};
pub use measurement::{Measured, Method};
#[cfg(feature = "mpi")]
pub use mpi::{
    Datatype, MpiGroup, MpiOperation, OperationError, OperationKind, OperationSettings, Reduction, Root, UnknownName,
    WrongResult,
};
pub use observation::{Observation, local_run_time, run_time};
pub use observations::{Basis, Observations, Stamps, State};
pub use operation::{ByMessages, Operation, Together};
pub use own::{OwnKind, OwnKindError, OwnOperation};
pub use preset::{Preset, PresetError};
pub use processing::{Figure, PerRank, Processing, ProcessingError};
pub use scheme::{EachCall, RoundTime, Scheme, Series, Windows};
pub use shuffle::shuffle;
pub use sizes::{Sizes, SizesError};
pub use stage::{MeasureError, Stage, Time};
pub use stats::{
    Averages, Comparison, Confidence, ConfidenceError, Density, GroupError, Histogram, HodgesLehmann, Interval,
    MannWhitney, MeansOfSize, MedianInterval, PValues, RankMethod, Sample, SampleError, SampleSizeCheck, ShapiroWilk,
    TestError, VarianceParts, WelchTest, holm, stars,
};
pub use stopping::{Decay, Ended, Progress, Stopping, StoppingError};
