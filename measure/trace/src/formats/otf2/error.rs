//! Errors of OTF2 archives.

use std::io;
use std::path::{Path, PathBuf};

use crate::TraceError;
use downbeat_files::FileError;

/// Error of reading or writing an OTF2 archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Otf2Error {
    /// A file or folder cannot be read or written.
    #[error("{}: {why}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        why: io::Error,
    },
    /// The content of a file is not valid.
    #[error("{}: {why}", path.display())]
    Content {
        /// File with the content.
        path: PathBuf,
        /// Description of the problem.
        why: String,
    },
    /// The events of an archive do not form a trace.
    #[error("{}: {why}{}", path.display(), match named.as_slice() {
        [] => String::new(),
        named => format!(" ({})", named.join(", ")),
    })]
    Trace {
        /// Anchor file.
        path: PathBuf,
        /// Error of the trace, with its numbers of locations.
        #[source]
        why: TraceError,
        /// Locations that it mentions, with their numbers and names in the archive.
        named: Vec<String>,
    },
    /// A temporary file was modified.
    #[error(transparent)]
    File(FileError),
}

/// Errors of temporary files.
impl From<FileError> for Otf2Error {
    fn from(why: FileError) -> Self {
        match why {
            FileError::Io { path, why } => Self::Io { path, why },
            other => Self::File(other),
        }
    }
}

/// Errors of files of archives.
impl From<downbeat_otf2::Error> for Otf2Error {
    fn from(why: downbeat_otf2::Error) -> Self {
        match why {
            downbeat_otf2::Error::Io { path, why } => Self::Io { path, why },
            downbeat_otf2::Error::Content { path, why } => Self::Content { path, why },
        }
    }
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
