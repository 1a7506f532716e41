//! Errors of records.

use core::fmt;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_files::{FileError, Flaw};

use crate::GroupKey;

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
    /// There are no launches to analyse.
    NoLaunches,
    /// A launch to analyse differs from the first one in a factor.
    MixedFactors {
        /// Name of the launch.
        launch: String,
        /// Name of the first factor that differs.
        factor: String,
    },
    /// A launch to analyse has the same group twice.
    DuplicateGroup {
        /// Name of the launch.
        launch: String,
        /// Key of the group.
        key: GroupKey,
    },
    /// A time to analyse is not a number, or longer than 292 years.
    InvalidTime {
        /// Name of the launch.
        launch: String,
        /// Key of the group.
        key: GroupKey,
    },
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
                    None => f.write_str("the launch to be measured now"),
                }
            }
            Self::InUse(path) => write!(f, "{}: another process is writing it", path.display()),
            Self::Format(why) => f.write_str(why),
            Self::NoLaunches => f.write_str("there is no launch"),
            Self::MixedFactors { launch, factor } => write!(
                f,
                "{launch}: the factor \"{factor}\" is not that of the first launch"
            ),
            Self::DuplicateGroup { launch, key } => write!(f, "{launch}: {key}: measured twice"),
            Self::InvalidTime { launch, key } => write!(
                f,
                "{launch}: {key}: a time is not a number, or longer than 292 years"
            ),
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
pub(crate) enum RecordFlaw {
    File(Flaw),
    /// The file ends on this line, within the header: nothing was measured yet.
    NoHeader(u64),
}

impl RecordFlaw {
    /// The record as a whole is invalid.
    #[cfg(feature = "parquet")]
    pub(crate) fn whole(why: impl Into<String>) -> Self {
        Flaw::Whole(why.into()).into()
    }

    /// Adds the path of the file.
    pub(crate) fn in_file(self, path: &Path) -> RecordError {
        let flaw = match self {
            Self::File(flaw) => flaw,
            Self::NoHeader(line) => Flaw::Line(line, "the file ends within the header".to_owned()),
        };
        flaw.in_file(path).into()
    }
}

impl From<Flaw> for RecordFlaw {
    fn from(flaw: Flaw) -> Self {
        Self::File(flaw)
    }
}

impl From<io::Error> for RecordFlaw {
    fn from(why: io::Error) -> Self {
        Flaw::Io(why).into()
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
            "x/a.csv: the factor \"mpi\" is \"Open MPI\" here, but none in the launch to be measured now"
        );
    }
}
