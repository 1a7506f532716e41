//! Errors of files.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of a file, with its path and the position in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// A file or folder cannot be read or written.
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
    /// A line of a text file is invalid.
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        number: u64,
        /// Reason.
        why: String,
    },
    /// A byte of a binary file is invalid.
    Byte {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the byte, from 0.
        offset: u64,
        /// Reason.
        why: String,
    },
    /// A file or folder as a whole is invalid.
    Content {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// The content cannot be written, because it could not be read again.
    Unwritable(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Line { path, number, why } => {
                write!(f, "{}: line {number}: {why}", path.display())
            }
            Self::Byte { path, offset, why } => {
                write!(f, "{}: byte {offset}: {why}", path.display())
            }
            Self::Content { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Unwritable(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for FileError {}

impl FileError {
    /// An error of a file or folder as a whole.
    pub fn content(path: &Path, why: impl Into<String>) -> Self {
        Self::Content {
            path: path.to_owned(),
            why: why.into(),
        }
    }

    /// Adds the path to an error of the operating system, for `map_err`.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |why| Self::Io { path, why }
    }
}

/// An error at a position of a file, found by code that does not know the file's name.
#[derive(Debug)]
pub enum Flaw {
    /// The file cannot be read.
    Io(io::Error),
    /// This line is invalid; lines count from 1.
    Line(u64, String),
    /// This byte is invalid; offsets count from 0.
    Byte(u64, String),
    /// The file as a whole is invalid.
    Whole(String),
}

impl Flaw {
    /// Adds the path of the file.
    pub fn in_file(self, path: &Path) -> FileError {
        let path = path.to_owned();
        match self {
            Self::Io(why) => FileError::Io { path, why },
            Self::Line(number, why) => FileError::Line { path, number, why },
            Self::Byte(offset, why) => FileError::Byte { path, offset, why },
            Self::Whole(why) => FileError::Content { path, why },
        }
    }
}

impl From<io::Error> for Flaw {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_that_names_the_file() {
        let path = PathBuf::from("x/a.csv");
        let full = FileError::io(&path)(io::ErrorKind::StorageFull.into());
        assert_eq!(full.to_string(), "x/a.csv: no storage space");
        let line = Flaw::Line(7, "\"NaN\" is no run-time".to_owned()).in_file(&path);
        assert_eq!(line.to_string(), "x/a.csv: line 7: \"NaN\" is no run-time");
    }
}
