//! x
#![no_std]
#![forbid(unsafe_code)]

mod affine;
mod clock;
mod encoding;
mod latch;
mod model;
#[cfg(test)]
mod model_laws;
mod published;
mod rate;
mod ticks;
mod time;

pub use clock::{Clock, ModelClock, ReadOrdering};
pub use encoding::DecodeModelError;
pub use latch::{Latch, LatchWriter};
pub use model::{ClockModel, Counter, Instant, ModelError, Source};
pub use published::{Published, Publisher};
pub use rate::{RateError, TickRate};
pub use ticks::Ticks;
pub use time::{Domain, Duration, Global, Local, Node, ParseDurationError, Timestamp};
