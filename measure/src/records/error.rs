//! What can be wrong with records.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with records.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// A file or folder cannot be read or written.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// A line of a file is not what it should be.
    Line {
        /// Of which file.
        path: PathBuf,
        /// Counted from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A file that has no lines is not what it should be somewhere.
    Byte {
        /// Which.
        path: PathBuf,
        /// Where, counted from 0.
        offset: u64,
        /// What is wrong there.
        why: String,
    },
    /// A file or folder is not what it should be.
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Two launches that are to be of one experiment differ in a factor.
    Differ {
        /// The one that was first.
        first: PathBuf,
        /// The other, or `None` if it was to be written.
        second: Option<PathBuf>,
        /// The first factor that differs.
        factor: String,
        /// Its values, where it has any.
        values: [Option<String>; 2],
    },
    /// Another process writes this file.
    InUse(PathBuf),
    /// There is no such format.
    Format(String),
    /// Something cannot be written, as it could not be read again.
    Unwritable(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Line { path, number, why } => write!(f, "{}: line {number}: {why}", path.display()),
            Self::Byte { path, offset, why } => write!(f, "{}: byte {offset}: {why}", path.display()),
            Self::Content { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Differ { first, second, factor, values: [one, two] } => {
                let value = |value: &Option<String>| match value {
                    Some(value) => format!("\"{value}\""),
                    None => "none".to_owned(),
                };
                let (one, two) = (value(one), value(two));
                write!(f, "{}: the factor \"{factor}\" is {one} here, but {two} in ", first.display())?;
                match second {
                    Some(second) => write!(f, "{}", second.display()),
                    None => f.write_str("what is to be measured now"),
                }
            }
            Self::InUse(path) => write!(f, "{}: another process is writing it", path.display()),
            Self::Format(why) | Self::Unwritable(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for RecordError {}

impl RecordError {
    pub(crate) fn content(path: &Path, why: impl Into<String>) -> Self {
        Self::Content { path: path.to_owned(), why: why.into() }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |why| Self::Io { path, why }
    }
}

/// What is wrong with a file whose name whoever finds it does not know.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It cannot be read.
    Io(io::Error),
    /// This line is wrong, counted from 1.
    Line(u64, String),
    /// This byte is wrong, counted from 0.
    Byte(u64, String),
    /// It ends on this line, within the head.
    NoHead(u64),
    /// It is wrong somewhere.
    #[cfg(feature = "parquet")]
    Somewhere(String),
}

impl Flaw {
    pub(crate) fn of(self, path: &Path) -> RecordError {
        let path = path.to_owned();
        match self {
            Self::Io(why) => RecordError::Io { path, why },
            Self::Line(number, why) => RecordError::Line { path, number, why },
            Self::Byte(offset, why) => RecordError::Byte { path, offset, why },
            Self::NoHead(number) => {
                let why = "the file ends before anything that was measured".to_owned();
                RecordError::Line { path, number, why }
            }
            #[cfg(feature = "parquet")]
            Self::Somewhere(why) => RecordError::Content { path, why },
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
        let full = RecordError::io(&path)(io::ErrorKind::StorageFull.into());
        assert_eq!(full.to_string(), "x/a.csv: no storage space");
        let line = Flaw::Line(7, "\"NaN\" is no run-time".to_owned()).of(&path);
        assert_eq!(line.to_string(), "x/a.csv: line 7: \"NaN\" is no run-time");
        let differ = |second: Option<&str>, two: Option<&str>| RecordError::Differ {
            first: path.clone(),
            second: second.map(PathBuf::from),
            factor: "mpi".to_owned(),
            values: [Some("Open MPI"), two].map(|value| value.map(str::to_owned)),
        };
        assert_eq!(
            differ(Some("x/b.csv"), Some("MPICH")).to_string(),
            "x/a.csv: the factor \"mpi\" is \"Open MPI\" here, but \"MPICH\" in x/b.csv"
        );
        assert_eq!(
            differ(None, None).to_string(),
            "x/a.csv: the factor \"mpi\" is \"Open MPI\" here, but none in what is to be measured now"
        );
    }
}
