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

use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::SystemTime;

pub use agree::{agree, agree_blocking, gather_texts};
pub use calibration::{CalibrationOptions, Known};
pub use failure::Failure;
pub use progress::Progress;
pub use skew::SkewSpec;
pub use trial::{Trial, TrialOptions, Tried};

/// How many threads can run at once.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Another number each time.
pub fn random_seed() -> u64 {
    // The standard library draws the keys of its hashes by lot.
    RandomState::new().hash_one(std::process::id())
}

/// Date and time, in UTC: `2026-11-21T20:34:49Z`.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
