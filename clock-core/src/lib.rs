//! x
#![no_std]
#![forbid(unsafe_code)]

mod affine;
mod clock;
mod encoding;
mod fit;
#[cfg(test)]
mod fit_laws;
mod latch;
mod model;
#[cfg(test)]
mod model_laws;
mod offset;
#[cfg(test)]
mod offset_laws;
mod published;
mod rate;
mod spline;
#[cfg(test)]
mod spline_laws;
mod ticks;
mod time;

pub use clock::{Clock, ModelClock, ReadOrdering};
pub use encoding::DecodeModelError;
pub use fit::{FitError, FittedLine, LeastSquares, OffsetFit, OffsetLine, PointError};
pub use latch::{Latch, LatchWriter};
pub use model::{ClockModel, Counter, Instant, ModelError, Source};
pub use offset::{
    Exchange, ExchangeError, MeanRoundTrip, MeanRttOffset, OffsetError, OffsetSample, SkampiOffset,
    TraceCollectorOffset,
};
pub use published::{Published, Publisher};
pub use rate::{RateError, TickRate};
pub use spline::{ConstrainedSpline, Knot, SplineError};
pub use ticks::Ticks;
pub use time::{Domain, Duration, Global, Local, Node, ParseDurationError, Timestamp};
