//! What Downbeat's programs share: how they read their options, how they fail, what their tables look like, and how
//! synchronizations are tried out.
//!
//! This is no library for others: it prints, and it knows the options of our programs.

mod agree;
pub mod bench;
mod calibration;
pub mod cli;
mod failure;
pub mod output;
mod progress;
pub mod records;
mod skew;
mod trial;

pub use agree::{agree, gather_texts};
pub use calibration::{CalibrationOptions, Known};
pub use failure::Failure;
pub use progress::Progress;
pub use skew::SkewSpec;
pub use trial::{Trial, TrialOptions, Tried};
