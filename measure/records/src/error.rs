//! Errors of records.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_files::{FileError, Flaw as FileFlaw};

/// An error of a record or of an experiment.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// A file cannot be read or written, or its content is invalid.
    File(FileError),
    /// Two launches of one experiment differ in a factor.
    Differ {
        /// Path of the first launch.
        first: PathBuf,
        /// Path of the second launch; `None` if it has not been written yet.
        second: Option<PathBuf>,
        /// Name of the first factor that differs.
        factor: String,
        /// Values of the factor, where it has one.
        values: [Option<String>; 2],
    },
    /// Another process writes this file.
    InUse(PathBuf),
    /// This format is unknown, or the program was built without it.
    Format(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => why.fmt(f),
            Self::Differ {
                first,
                second,
                factor,
                values: [one, two],
            } => {
                let value = |value: &Option<String>| match value {
                    Some(value) => format!("\"{value}\""),
                    None => "none".to_owned(),
                };
                let (one, two) = (value(one), value(two));
                write!(
                    f,
                    "{}: the factor \"{factor}\" is {one} here, but {two} in ",
                    first.display()
                )?;
                match second {
                    Some(second) => write!(f, "{}", second.display()),
                    None => f.write_str("what is to be measured now"),
                }
            }
            Self::InUse(path) => write!(f, "{}: another process is writing it", path.display()),
            Self::Format(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for RecordError {}

impl From<FileError> for RecordError {
    fn from(why: FileError) -> Self {
        Self::File(why)
    }
}

impl RecordError {
    pub(crate) fn content(path: &Path, why: impl Into<String>) -> Self {
        FileError::content(path, why).into()
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let with_path = FileError::io(path);
        move |why| with_path(why).into()
    }

    pub(crate) fn unwritable(why: impl Into<String>) -> Self {
        FileError::Unwritable(why.into()).into()
    }
}

/// An error in a record, found by code that does not know the file's name.
#[derive(Debug)]
pub(crate) enum Flaw {
    File(FileFlaw),
    /// The file ends on this line, within the header: nothing was measured yet.
    NoHead(u64),
}

impl Flaw {
    /// The record as a whole is invalid.
    #[cfg(feature = "parquet")]
    pub(crate) fn whole(why: impl Into<String>) -> Self {
        FileFlaw::Whole(why.into()).into()
    }

    /// Adds the path of the file.
    pub(crate) fn in_file(self, path: &Path) -> RecordError {
        let flaw = match self {
            Self::File(flaw) => flaw,
            Self::NoHead(line) => FileFlaw::Line(
                line,
                "the file ends before anything that was measured".to_owned(),
            ),
        };
        flaw.in_file(path).into()
    }
}

impl From<FileFlaw> for Flaw {
    fn from(flaw: FileFlaw) -> Self {
        Self::File(flaw)
    }
}

impl From<io::Error> for Flaw {
    fn from(why: io::Error) -> Self {
        FileFlaw::Io(why).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_that_differ_are_both_named() {
        let path = PathBuf::from("x/a.csv");
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
