#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod agree;
pub mod bench;
mod calibration;
pub mod cli;
mod declared_rates;
pub mod digest;
#[cfg(unix)]
mod ending_signals;
mod failure;
pub mod health;
mod help;
mod independent;
pub mod kept;
pub mod machine;
pub mod output;
mod outputs;
mod packaging;
pub mod page;
mod progress;
pub mod records;
mod shuffle;
pub mod sizes;
mod suggestion;
mod table;
mod text;
pub mod trace;
mod trial;
pub mod units;

pub use agree::gather_texts;
pub use calibration::{CalibrationOptions, UsedCalibration};
pub use declared_rates::DeclaredRates;
pub use downbeat_files::read_text;
pub use downbeat_sync::collective::{agree, agree_blocking};
#[cfg(unix)]
pub use ending_signals::ending_signals;
pub use failure::Failure;
pub use independent::IndependentRate;
pub use machine::{cores, now, random_seed, survive_file_size_limit};
pub use outputs::{Outputs, write_text};
pub use packaging::PackagingCommand;
pub use progress::ProgressBar;
pub use suggestion::{did_you_mean, nearest};
pub use table::{RowMark, Table, TableColumns};
pub use text::{PrintOptions, Text, width};
pub use trial::{OffsetCheckOptions, Trial, TrialOptions, TrialResult};
