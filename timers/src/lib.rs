//! The clocks of a machine: which there are, what each costs, how fast it counts, and how far to trust it.
//!
//! A clock here is a value that exists only where its counter can be read, so that reading it cannot fail; what is
//! missing has a named reason. Every clock implements [`Clock`] of `downbeat-clock-core` and returns raw ticks.
//!
//! | clock | reads | ordering |
//! |---|---|---|
//! | [`TscClock`] | the time stamp counter of x86, `rdtscp` | ordered; `open` and `close` are fenced |
//! | [`UnorderedTsc`] | the same, `rdtsc` | none |
//! | [`CntvctClock`] | the generic timer of aarch64 | ordered; `open` and `close` are fenced |
//! | `SystemClock` | `clock_gettime` with any of four clocks, `gettimeofday` | ordered |
//! | `WtimeClock` | `MPI_Wtime`; feature `mpi` | the library's |
//! | `SkewedClock` | any other clock, made wrong in a known way: for tests | that clock's |
//!
//! ```
//! use downbeat_clock_core::{Local, ModelClock};
//! use downbeat_timers::{Duration, SystemClock, SystemClockId, TscClock, calibrate_during};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # if TscClock::detect().is_err() { return Ok(()); }
//! let tsc = TscClock::detect()?;
//! let raw = SystemClock::detect(SystemClockId::MonotonicRaw)?;
//! let calibration = calibrate_during(&tsc, &raw, Duration::from_millis(10))?;
//! println!("{:.0} Hz, certain to {:.1} ppm", calibration.rate().hz(), calibration.uncertainty() * 1e6);
//!
//! let clock = ModelClock::<_, Local>::new(tsc, calibration.model()?);
//! let start = clock.open();
//! let spent = clock.close() - start;
//! assert!(spent >= Duration::ZERO);
//! # Ok(())
//! # }
//! ```
//!
//! # Design
//! Nothing runs before `main`, and nothing is global or lazy: a program decides when it calibrates, for how long, and
//! what it does with the [uncertainty](Calibration::uncertainty), which is a bound and not a guess. There is no silent
//! fallback: a program that asked for the counter does not get a clock that can be set.
//!
//! # Features
//! * `std` (default): system clocks, what the kernel says of the counter, calibration files, pinning, comparison of
//!   cores, skewed clocks. Without it, detection asks the processor only.
//! * `mpi`: `WtimeClock`; needs an MPI library and libclang to build.
//!
//! # Caveats
//! * In a virtual machine the counter's rate changes when the machine moves to another host. Nothing in the guest tells.
//! * `CLOCK_MONOTONIC_RAW` is the kernel's idea of the counter's rate. It can be off from true time by some tens of ppm,
//!   and so is everything calibrated against it; what a global clock needs is that it is steady.
//! * [`CntvctClock`] was written, but not yet run.
#![cfg_attr(not(any(feature = "std", test)), no_std)]

#[cfg(feature = "std")]
mod caches;
mod calibrate;
mod cntvct;
#[cfg(feature = "std")]
mod compare;
mod cores;
#[cfg(feature = "std")]
mod cost;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "std")]
mod saved;
#[cfg(feature = "std")]
mod skew;
#[cfg(feature = "std")]
mod system;
mod tsc;

#[cfg(feature = "std")]
pub use caches::{CachesUnknown, DataCache, data_caches, last_private_cache};
#[cfg(feature = "std")]
pub use calibrate::calibrate_during;
pub use calibrate::{BRACKETS, Bracket, Calibration, CalibrationError, calibrate};
pub use cntvct::{CntvctClock, CntvctUnavailable};
#[cfg(feature = "std")]
pub use compare::{ALL_PAIRS_UP_TO, CoreOffset, compare_cores, compare_pair};
pub use cores::CoreId;
#[cfg(feature = "std")]
pub use cores::{CoreError, allowed_cores, current_core, pin_to, socket_of};
#[cfg(feature = "std")]
pub use cost::{ReadCost, Resolution};
pub use downbeat_clock_core::{Clock, Duration, TickRate, Ticks};
#[cfg(feature = "mpi")]
pub use mpi::{WtimeClock, WtimeUnavailable};
#[cfg(feature = "std")]
pub use saved::{Machine, SavedCalibration};
#[cfg(feature = "std")]
pub use skew::{Skew, SkewError, SkewStep, SkewSwing, SkewWander, SkewedClock, Truth};
#[cfg(feature = "std")]
pub use system::{SystemClock, SystemClockId, SystemClockUnavailable};
pub use tsc::{
    Clocksource, Hypervisor, KernelFacts, TscClock, TscDoubt, TscFacts, TscUnavailable,
    UnorderedTsc,
};
