//! Errors of archives.

use core::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Error of reading or writing an archive.
#[derive(Debug)]
pub enum Error {
    /// A file or folder cannot be read or written.
    Io {
        /// File or folder.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
    /// The content of a file is not valid.
    Content {
        /// File with the content.
        path: PathBuf,
        /// Description of the problem.
        why: String,
    },
}

impl Error {
    /// Returns a converter of errors of the operating system for this file or folder.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |why| Self::Io {
            path: path.to_owned(),
            why,
        }
    }

    /// Creates an error of the content of a file.
    pub fn content(path: &Path, why: impl Into<String>) -> Self {
        Self::Content {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

/// Opens a regular file of an archive; a pipe or a device might never end.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    if !fs::metadata(path).map_err(Error::io(path))?.is_file() {
        return Err(Error::content(path, "it is not a file"));
    }
    File::open(path).map_err(Error::io(path))
}

/// Reads a whole file of an archive.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut file = vec![];
    io::Read::read_to_end(&mut open(path)?, &mut file).map_err(Error::io(path))?;
    Ok(file)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Content { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io { why, .. } => Some(why),
            Self::Content { .. } => None,
        }
    }
}
