#![doc = include_str!("../README.md")]
//!
//! # Ranks of an MPI program
//! With the feature `mpi`:
//!
//! ```toml
//! [dependencies]
//! downbeat = { version = "0.1", features = ["mpi"] }
//! ```
//!
#![cfg_attr(feature = "mpi", doc = "```no_run")]
#![cfg_attr(not(feature = "mpi"), doc = "```ignore")]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let universe = downbeat::mpi::initialize().ok_or("MPI was initialized before")?;
//!     let clock = downbeat::GlobalClock::synchronize(&universe.world())?;
//!     println!("rank {} of {}: {}", clock.rank(), clock.size(), clock.now());
//!     Ok(())
//! }
//! ```
//!
//! Now `clock.now()` is the same time on all ranks, and [`GlobalClock::now_with_error`] tells the largest error that it can have. Ranks of
//! one node read one counter. [`GlobalClock::builder`] selects another clock or algorithm.
//!
//! # Time of one process
//! [`Instant`] replaces [`std::time::Instant`]: the same calls, on the calibrated counter, with an upper limit of the error.
//! [`WallAnchor`] converts timestamps to the time of day, with its error. Code that is generic over [`Clock`] is tested with a
//! [`MockClock`].
//!
#![cfg_attr(feature = "regions", doc = "```")]
#![cfg_attr(not(feature = "regions"), doc = "```ignore")]
//! use downbeat::{Instant, region};
//!
//! let start = Instant::now();
//! {
//!     let _solve = region!("solve");
//! }
//! let (spent, error) = (start.elapsed(), Instant::now().largest_error_since(start));
//! println!("{spent:?} +- {error:?}");
//! assert!(downbeat::regions::profile().region("solve").is_some());
//! ```
//!
//! # Features
//! * `regions` (default): timers of program regions, [`region!`] and [`regions`].
//! * `tracing`: `regions::RegionLayer`, with which the spans of a program that uses `tracing` are regions.
//! * `mpi`: `GlobalClock::synchronize`, for the ranks of an MPI program.
//! * `serde`: times, models, bounds and algorithms are stored.
//!
//! # Caveats
//! * Clocks drift: a line that was learned over some ten milliseconds is wrong by microseconds ten seconds later, in the cluster of an
//!   average data centre. A long program [keeps](GlobalClock::keeping) its clock by sessions of a millisecond, or calls
//!   [`GlobalClock::resynchronize_over`], or `resynchronize` over MPI, from time to time, outside of timed code.
//! * The stated error is an upper limit, not an estimate: it grows by the declared [drift](GlobalClockBuilder::max_drift), and is
//!   usually hundreds of times too wide. [`AccuracyCheck`] measures how far apart clocks are.
//! * Ranks that share cores, or threads on a loaded machine, measure offsets only while both run; the stated error shows it.
//!
//! # Other languages
//! Programs in C, C++ and Fortran link `libdownbeat`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod builder;
mod error;
mod global_clock;
mod instant;
mod keeping;
mod local_time;
mod meetings;

pub use builder::GlobalClockBuilder;
#[doc(no_inline)]
pub use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, Global, Local, ModelClock, TickRate, Ticks,
    Timestamp,
};
#[cfg(feature = "regions")]
#[doc(no_inline)]
pub use downbeat_regions::{self as regions, region};
#[cfg(feature = "mpi")]
#[doc(no_inline)]
pub use downbeat_sync::MpiComm;
#[doc(no_inline)]
pub use downbeat_sync::{
    Algorithm, Comm, CommError, ThreadCluster, ThreadComm, block_on_ready,
    check::AccuracyCheck,
    collective,
    harmonize::Meeting,
    keep::KeptSession,
    timesync::{ExchangeSession, SessionLimits, SessionRule},
};
#[doc(no_inline)]
pub use downbeat_timers::{AnyClock, ClockName, MachineClock, MockClock, WallAnchor};
pub use error::GlobalClockError;
pub use global_clock::GlobalClock;
pub use instant::{Instant, InstantAnchor, InstantClock};
pub use keeping::ClockKeeper;
pub use local_time::LocalTime;
pub use meetings::Meetings;
#[cfg(feature = "mpi")]
#[doc(no_inline)]
pub use mpi;

/// Returns the value of rank 0 on all ranks, which all call this: a time at which all begin, for example.
///
/// # Errors
/// If a rank is gone.
pub fn from_first<P: downbeat_sync::payload::Payload, M: Comm>(
    comm: &M,
    mine: P,
) -> Result<P, CommError> {
    block_on_ready(collective::broadcast(comm, mine))
}
