#![doc = include_str!("../README.md")]
//!
//! # Contents
//! Each thread of a rank writes [`Record`]s to blocks of shared memory, which survive
//! whatever ends the rank. A [`Collector`] packs them into one file per rank; a
//! [`Recording`] makes one trace of the files of all ranks.
//!
//! # Caveats
//! Blocks are read on the machine that wrote them, by the same version. Files of ranks
//! carry a version, and can be read anywhere.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod block;
mod collector;
mod definition;
mod merge;
mod packed;
mod rank_file;
pub mod record;
pub mod settings;

pub use collector::{Collection, Collector, LostRecords, folder_of_files};
pub use definition::{CommunicatorDefinition, Definition, OWN, Sample, WORLD};
pub use downbeat_files::FileError;
pub use merge::events::{MergeSummary, MergedEvents};
pub use merge::{ClockError, Ending, Recording, rank_files};
pub use record::{Access, Envelope, Operation, Record};
pub use settings::Settings;
