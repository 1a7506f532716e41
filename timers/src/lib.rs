//! x
#![cfg_attr(not(any(feature = "std", test)), no_std)]

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
pub use calibrate::calibrate_during;
pub use calibrate::{BRACKETS, Bracket, Calibration, CalibrationError, calibrate};
pub use cntvct::{CntvctClock, CntvctUnavailable};
#[cfg(feature = "std")]
pub use compare::{ALL_PAIRS_UP_TO, CompareError, CoreOffset, compare_cores, compare_pair};
pub use cores::*;
#[cfg(feature = "std")]
pub use cost::{ReadCost, Resolution};
pub use downbeat_clock_core::{Clock, Duration, TickRate, Ticks};
#[cfg(feature = "mpi")]
pub use mpi::{WtimeClock, WtimeUnavailable};
#[cfg(feature = "std")]
pub use saved::{LoadError, Machine, SavedCalibration};
#[cfg(feature = "std")]
pub use skew::{Skew, SkewError, SkewedClock, Step, Swing, Truth, Wander};
#[cfg(feature = "std")]
pub use system::{SystemClock, SystemClockId, SystemClockUnavailable};
pub use tsc::{Clocksource, Hypervisor, KernelFacts, TscClock, TscDoubt, TscFacts, TscUnavailable, UnorderedTsc};
