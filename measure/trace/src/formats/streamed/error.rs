//! Errors of the correction of a trace that is not held in memory.

use std::fmt;

use crate::distributed::CorrectionError;
use crate::formats::otf2::Otf2Error;
use downbeat_files::FileError;

/// Error of the correction of a trace that is not held in memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamedError {
    /// The trace cannot be read or written, or is not a valid one.
    Record(FileError),
    /// The same for an archive.
    Archive(Otf2Error),
    /// A temporary file cannot be written.
    Unwritten(FileError),
    /// The trace must be corrected in memory.
    InMemory(FileError),
    /// The correction left violations, which is a bug.
    Violated(CorrectionError),
}

impl fmt::Display for StreamedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(why) | Self::Unwritten(why) | Self::InMemory(why) => why.fmt(f),
            Self::Archive(why) => why.fmt(f),
            Self::Violated(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for StreamedError {}

impl From<FileError> for StreamedError {
    fn from(why: FileError) -> Self {
        Self::Record(why)
    }
}

impl From<Otf2Error> for StreamedError {
    fn from(why: Otf2Error) -> Self {
        Self::Archive(why)
    }
}
