#![doc = include_str!("../README.md")]
//!
//! # Clocks
//! A value of a clock type exists only where its counter can be read, so reading it cannot fail; detection of an
//! unavailable clock returns the reason. Every clock implements [`Clock`] of `downbeat-clock-core` and returns raw ticks.
//!
//! | clock | reads | ordering |
//! |---|---|---|
//! | [`TscClock`] | the time stamp counter of x86, `rdtscp` | ordered; `open` and `close` are fenced |
//! | [`UnorderedTsc`] | the same, `rdtsc` | none |
//! | [`CntvctClock`] | the generic timer of aarch64 | ordered; `open` and `close` are fenced |
//! | `SystemClock` | `clock_gettime` with any of five clocks, `gettimeofday` | ordered |
//! | `PtpClock` | a hardware clock of PTP, that of the hypervisor included | ordered |
//! | `WtimeClock` | `MPI_Wtime`; feature `mpi` | that of the MPI library |
//! | `MachineClock` | any of those above except `UnorderedTsc` and `WtimeClock`, selected by name when the program runs | ordered |
//! | `SkewedClock` | any other clock with a known error, for tests | that clock's |
//! | `MockClock` | what a test sets | ordered |
//!
//! # Design
//! Nothing runs before `main`, and nothing is global or lazy: a program decides when it calibrates, for how long, and how
//! it uses the [uncertainty](calibration::Calibration::uncertainty), which is a guaranteed limit. There is no silent fallback: a program
//! that requests the counter does not get a clock that can be set.
//!
//! # The kernel's time
//! `Discipline` tells if a daemon keeps the time of the system synchronized and by how much it adjusts the rate, `Clocksources` what the
//! kernel counts, `kernel_counter_hz` the rate that it assumes, and `PtpDevice` the hardware clocks of PTP, which `PtpClock` reads.
//!
//! # Clocks of devices
//! Accelerators and network cards stamp what they do by clocks of their own, which answer after a delay. `device::FollowedDevice`
//! compares one with the host about once a second, and converts its timestamps with bounds that hold for certain. A profiler
//! implements `device::DeviceClock` for its device: one function that reads it.
//!
//! # Features
//! * `std` (default): system clocks, the kernel's facts about the counter, calibration files, pinning, comparison and frequency of
//!   cores, skewed and mock clocks, the time of day of timestamps. Without it, detection only queries the processor.
//! * `serde`: calibrations are stored.
//! * `cuda`: the global timer of a CUDA device, `device::CudaTimer`; needs no toolkit, and the driver only when a timer is opened.
//! * `mpi`: `WtimeClock`; requires an MPI library and libclang to build.
//!
//! # Caveats
//! * In a virtual machine the counter's rate changes when the machine moves to another host; the guest cannot detect this.
//! * `CLOCK_MONOTONIC_RAW` uses the kernel's estimate of the counter's rate. It can differ from true time by some tens of
//!   ppm, and so does every calibration against it; a global clock only needs a steady rate.
//! * [`CntvctClock`] is tested in an emulator, and has not been run on hardware yet.
//!
//! [`UnorderedTsc`]: tsc::UnorderedTsc
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(any(feature = "std", test)), no_std)]

#[cfg(feature = "std")]
mod any_clock;
mod bracket;
#[cfg(feature = "std")]
pub mod caches;
mod calibrate;
#[cfg(all(feature = "std", unix))]
mod child_usage;
#[cfg(feature = "std")]
mod clocksource;
mod cntvct;
#[cfg(feature = "std")]
mod core_frequency;
pub mod cores;
#[cfg(feature = "std")]
mod cost;
#[cfg(feature = "std")]
pub mod device;
#[cfg(feature = "std")]
mod discipline;
mod error;
#[cfg(feature = "std")]
mod fork;
#[cfg(feature = "std")]
mod kernel_rate;
#[cfg(feature = "std")]
mod machine_clock;
#[cfg(feature = "std")]
mod mock;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "std")]
mod pages;
#[cfg(feature = "std")]
mod ptp;
mod resolution;
#[cfg(feature = "std")]
mod saved;
#[cfg(test)]
mod scripted;
#[cfg(feature = "std")]
pub mod skew;
#[cfg(feature = "std")]
mod system;
pub mod tsc;
#[cfg(feature = "std")]
mod wall;

#[cfg(feature = "std")]
pub use any_clock::AnyClock;
#[cfg(all(feature = "std", unix))]
pub use child_usage::ChildUsage;
pub use cntvct::CntvctClock;
#[cfg(feature = "std")]
pub use core_frequency::core_cycle;
#[cfg(feature = "std")]
pub use cost::ReadCost;
#[doc(no_inline)]
#[cfg(target_has_atomic = "64")]
pub use downbeat_clock_core::ModelClock;
#[doc(no_inline)]
pub use downbeat_clock_core::{Clock, Duration, Local, TickRate, Ticks, Timestamp};
pub use error::ClockUnavailable;
#[cfg(feature = "std")]
#[doc(hidden)]
pub use fork::at_fork;
#[cfg(feature = "std")]
pub use machine_clock::{CalibratedRate, ClockName, MachineClock, UnknownClock};
#[cfg(feature = "std")]
pub use mock::MockClock;
#[cfg(feature = "mpi")]
pub use mpi::WtimeClock;
#[cfg(feature = "std")]
pub use pages::{PagePlacement, numa_nodes, numa_of};
pub use resolution::Resolution;
#[cfg(feature = "std")]
pub use system::{SystemClock, SystemClockId};
pub use tsc::TscClock;
#[cfg(feature = "std")]
pub use wall::WallAnchor;

/// Calibration of counters, and its file.
pub mod calibration {
    pub use crate::bracket::{BRACKETS, Bracket, BracketSeries};
    #[cfg(feature = "std")]
    pub use crate::calibrate::calibrate_during;
    pub use crate::calibrate::{Calibration, CalibrationError, calibrate};
    #[cfg(feature = "std")]
    pub use crate::saved::{Machine, SavedCalibration};
}

/// The kernel's time: its synchronization, its clock sources and those of PTP, its rate of the counter.
#[cfg(feature = "std")]
pub mod kernel {
    pub use crate::clocksource::Clocksources;
    pub use crate::discipline::Discipline;
    pub use crate::kernel_rate::kernel_counter_hz;
    pub use crate::ptp::{PtpClock, PtpDevice};
}
