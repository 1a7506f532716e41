#![doc = include_str!("../README.md")]
//!
//! # Concepts
//! | type | contents |
//! |---|---|
//! | [`Archive`] | an archive that is read: its [`Anchor`], [`Definitions`], [`LocalDefinitions`] and events |
//! | [`Definition`], [`Event`] | all kinds of records of OTF2 1.0 to 3.2, as enums with a struct of [`definition`] or [`event`] for each kind; those of later versions are `Unknown`, with their data |
//! | [`EventReader`], [`EventRecord`] | events of one location, chunk by chunk; they are decoded on demand |
//! | [`ArchiveWriter`], [`EventWriter`] | a new archive, in either byte order |
//! | [`raw`] | records as bytes, to copy an archive with a few changes, also of kinds that are not known |
//!
//! References of a location become those of the archive by its [`Mappings`], as OTF2's own reader
//! does; [`EventRecord::corrected_time`] adds the offsets of its clock with OTF2's own rounding.
//!
//! # Limits
//! Archives in SIONlib containers, and files that were compressed with zlib, are refused with the reason.
//! Markers, snapshots and thumbnails are [`raw`] records.
//!
//! All parsers take bytes, and return an error for any that are not valid; they allocate no more memory
//! than the size of the file, and a chunk of at most 16 MiB of each open file of events.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod anchor;
mod archive;
mod codes;
pub mod definition;
mod error;
pub mod event;
mod events;
mod field;
pub mod files;
mod local;
pub mod raw;
mod records;
mod references;
mod value;
mod writer;

pub use anchor::Anchor;
pub use archive::{Archive, Definitions};
pub use codes::*;
pub use definition::{Definition, PropertyValue};
pub use error::Error;
pub use event::Event;
pub use events::{Attributes, EventReader, EventRecord};
pub use field::{Field, FixedTime, List, ShortList};
pub use local::{ClockOffset, LocalDefinitions, interpolated};
pub use references::*;
pub use value::{MetricValue, Value, ValueType};
pub use writer::{ArchiveWriter, EventWriter};
