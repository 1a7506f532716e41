//! Measures parallel operations on one global clock, and says what the measurements mean.
//!
//! This room has its types and one path from end to end: what every rank saw of an operation, its run-time, and the
//! statistics of many run-times after outliers were set aside.
//!
//! ```
//! use downbeat_clock_core::{Global, Timestamp};
//! use downbeat_measure::{Observation, Sample, run_time};
//!
//! // Two ranks took part in each of five calls; the last one was disturbed.
//! let at = Timestamp::<Global>::from_nanos;
//! let calls = [(0, 410), (1_000, 1_405), (2_000, 2_400), (3_000, 3_402), (4_000, 9_000)];
//! let mut nanos = Vec::new();
//! for (start, end) in calls {
//!     let ranks = [
//!         Observation { start: at(start), end: at(end - 5) },
//!         Observation { start: at(start + 3), end: at(end) },
//!     ];
//!     nanos.extend(run_time(&ranks).map(|span| span.as_nanos() as f64));
//! }
//! let sample = Sample::new(&mut nanos)?;
//! let kept = sample.without_outliers();
//! assert_eq!((sample.len(), kept.len()), (5, 4));
//! assert_eq!((sample.median(), kept.median()), (405.0, 403.5));
//! # Ok::<(), downbeat_measure::SampleError>(())
//! ```
//!
//! # What this crate does not do yet
//! It runs no operation, knows no measurement scheme and compares no experiments.
#![forbid(unsafe_code)]

mod observation;
mod stats;

pub use observation::{Observation, local_run_time, run_time};
pub use stats::{
    Averages, Comparison, Confidence, ConfidenceError, GroupError, HodgesLehmann, Interval, MannWhitney, MeansOfSize,
    PValues, RankMethod, Sample, SampleError, SampleSizeCheck, ShapiroWilk, TestError, VarianceParts, WelchTest,
    adjusted, holm, stars,
};
