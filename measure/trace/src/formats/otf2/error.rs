//! What can be wrong with an archive.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::{ClockOffsetError, TraceError};

/// What is wrong with an OTF2 archive, or keeps it from being written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Otf2Error {
    /// A file or folder cannot be read or written.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// OTF2 cannot read a file, or not all of it.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What OTF2 says of it.
        why: String,
    },
    /// A file is not what it should be.
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The events of an archive do not make a trace.
    Trace {
        /// Its anchor file.
        path: PathBuf,
        /// Why, where locations have the numbers of the trace.
        why: TraceError,
        /// The locations that it names, as the archive numbers and names them.
        named: Vec<String>,
    },
    /// No clock offsets make the corrected times of the times in an event file.
    Knots {
        /// The event file.
        path: PathBuf,
        /// Why.
        why: ClockOffsetError,
    },
}

impl Otf2Error {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |why| Self::Io {
            path: path.to_owned(),
            why,
        }
    }

    pub(super) fn content(path: &Path, why: impl Into<String>) -> Self {
        Self::Content {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

impl fmt::Display for Otf2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Unreadable { path, why } => {
                write!(f, "{}: OTF2 cannot read this: {why}", path.display())
            }
            Self::Content { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Trace { path, why, named } => {
                write!(f, "{}: {why}", path.display())?;
                if named.is_empty() {
                    Ok(())
                } else {
                    write!(f, " ({})", named.join(", "))
                }
            }
            Self::Knots { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl core::error::Error for Otf2Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io { why, .. } => Some(why),
            Self::Trace { why, .. } => Some(why),
            Self::Knots { why, .. } => Some(why),
            Self::Unreadable { .. } | Self::Content { .. } => None,
        }
    }
}
