//! What Downbeat's programs share: how they read their options, how they fail, what their tables look like, and how
//! synchronizations are tried out.
//!
//! This is no library for others: it prints, and it knows the options of our programs.

mod agree;
pub mod bench;
mod calibration;
pub mod cli;
mod failure;
pub mod machine;
pub mod output;
pub mod page;
mod progress;
pub mod records;
mod shuffle;
pub mod sizes;
mod skew;
pub mod trace;
mod trial;

pub use agree::{agree, agree_blocking, block_on_ready_failure, gather_texts};
pub use calibration::{CalibrationOptions, UsedCalibration};
pub use failure::Failure;
pub use machine::{cores, now, random_seed};
pub use progress::ProgressBar;
pub use skew::SkewSpec;
pub use trial::{Trial, TrialOptions, TrialResult};
