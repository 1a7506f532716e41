#![doc = include_str!("../README.md")]
//!
//! # Contents
//! Each thread of a rank writes [`Record`]s to blocks of shared memory, which survive whatever ends the rank. A [`Collector`] packs
//! them into one file per rank, a [`RankFile`]; a [`Recording`] makes one trace of the files of all ranks.
//!
//! # Caveats
//! Blocks are read on the machine that wrote them, by the same version. Files of ranks carry a version, and can be read anywhere.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod block;
mod definition;
mod merge;
pub mod packed;
mod rank_file;
pub mod record;
pub mod settings;
mod spool;

pub use definition::{CommunicatorDefinition, Definition, OWN, WORLD};
pub use merge::{ClockError, Ending, MergeError, MergeSummary, Recording, rank_files};
pub use rank_file::{BlockPlace, ENDING, MissingCalls, RankFile, RankWriter};
pub use record::{Access, Envelope, Operation, Record};
pub use settings::Settings;
pub use spool::{Collected, Collector, Lost, Recorded, folder_of_files};
