#![doc = include_str!("../README.md")]
//!
//! # Concepts
//! A process reads a counter. A [`TickRate`] is the length of a tick; a [`ClockModel`] is an affine map from ticks to
//! time, or from the clock of one process to that of another. Models are learned from ping-pongs, composed into one, and
//! applied millions of times.
//!
//! | | |
//! |---|---|
//! | [`Ticks`], [`Timestamp`], [`Duration`], [`Domain`] | raw readings, points and spans of time; the types keep clocks apart |
//! | [`TickRate`], [`ClockModel`] | exact fixed-point maps: apply, [invert](ClockModel::invert), [compose](ClockModel::then), [encode](ClockModel::encode) |
//! | [`Clock`], [`ModelClock`], [`PublishedModel`] | reading a clock through a model that another thread replaces |
//! | [`SkampiOffset`], [`MeanRttOffset`], [`TraceCollectorOffset`], [`LowestOffset`] | from [`Exchange`]s to an offset |
//! | [`LeastSquares`], [`OffsetFit`] | from offsets to a drift, with standard errors |
//! | [`ConstrainedSpline`] | a smooth curve through the offsets of several sessions |
//! | [`RegionTimer`], [`DecimalBin`] | timing a region of a program, with statistics in constant memory |
//!
//! # Precision
//! Time is counted in whole nanoseconds, and a model is exact to 0.51 ns for a year on either side of its anchor. A
//! floating-point number of seconds since 1970 would be exact to 240 ns. Composing models costs no relevant precision,
//! and composed models are as fast as single ones.
//!
//! # Caveats
//! * All arithmetic saturates 292 years from the origin; models reach 146 years. Nothing wraps, nothing panics.
//! * A model is a straight line. The drift of real clocks changes: a line that was learned over a second is usable for
//!   about ten seconds. A [`SlewedModel`] goes over to the next one without a jump.
//! * The interval of [`SkampiOffset`] is a guarantee as long as the clocks do not drift while it is measured; standard
//!   errors are estimates.
//!
//! # Processors without 64-bit atomics
//! They lack what threads share: [`ModelClock`], [`PublishedModel`] and [`RegionTimer`].
//!
//! # Scope
//! The crate reads no hardware (`downbeat-timers` does), sends no messages (`downbeat-sync` does) and measures nothing
//! (`downbeat-measure` does). It has no calendar and no time zones.
//!
//! [`ConstrainedSpline`]: spline::ConstrainedSpline
//! [`DecimalBin`]: histogram::DecimalBin
//! [`Exchange`]: offset::Exchange
//! [`LeastSquares`]: fit::LeastSquares
//! [`MeanRttOffset`]: offset::MeanRttOffset
//! [`OffsetFit`]: fit::OffsetFit
//! [`RegionTimer`]: region::RegionTimer
//! [`SkampiOffset`]: offset::SkampiOffset
//! [`TraceCollectorOffset`]: offset::TraceCollectorOffset
//! [`LowestOffset`]: offset::LowestOffset
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod affine;
mod bound;
mod clock;
mod duration;
mod encoding;
mod error;
pub mod fit;
#[cfg(test)]
mod fit_laws;
mod fixed;
pub mod histogram;
#[cfg(target_has_atomic = "64")]
#[doc(hidden)]
pub mod latch;
mod model;
#[cfg(target_has_atomic = "64")]
mod model_clock;
#[cfg(test)]
mod model_laws;
pub mod offset;
#[cfg(test)]
mod offset_laws;
#[cfg(target_has_atomic = "64")]
mod published;
mod rate;
#[cfg(target_has_atomic = "64")]
pub mod region;
#[cfg(feature = "serde")]
mod serialize;
mod share;
mod slew;
pub mod spline;
#[cfg(test)]
mod spline_laws;
mod ticks;
mod time;
pub mod tree;

pub use bound::ErrorBound;
pub use clock::{Clock, CounterInstruction, ReadOrdering};
pub use duration::{Duration, NegativeDuration, ParseDurationError};
pub use error::{FitError, ModelError, OffsetLimits};
pub use model::{ClockModel, Counter, Instant, ModelSource};
#[cfg(target_has_atomic = "64")]
pub use model_clock::ModelClock;
#[cfg(target_has_atomic = "64")]
pub use published::{ModelPublisher, PublishedModel};
pub use rate::TickRate;
pub use share::{ParseShareError, parse_share};
pub use slew::SlewedModel;
pub use ticks::Ticks;
pub use time::{Domain, Global, Local, Node, Timestamp};
