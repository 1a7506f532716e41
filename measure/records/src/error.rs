//! Errors of records.

use std::io;
use std::path::{Path, PathBuf};

use downbeat_files::{FileError, Flaw};

use crate::GroupKey;

/// An error of a record or of an experiment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file cannot be read or written, or its content is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// Two launches of one experiment differ in a factor.
    #[error(
        "{}: the factor \"{factor}\" is {} here, but {} in {}",
        first.display(),
        value_or_none(&values[0]),
        value_or_none(&values[1]),
        second.as_ref().map_or("the launch to be measured now".into(), |path| path.to_string_lossy())
    )]
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
    #[error("{}: another process is writing it", .0.display())]
    InUse(PathBuf),
    /// This format is unknown, or the program was built without it.
    #[error("{0}")]
    Format(String),
    /// There are no launches to analyse.
    #[error("there is no launch")]
    NoLaunches,
    /// A launch to analyse differs from the first one in a factor.
    #[error("{launch}: the factor \"{factor}\" is not that of the first launch")]
    MixedFactors {
        /// Name of the launch.
        launch: String,
        /// Name of the first factor that differs.
        factor: String,
    },
    /// A launch to analyse has the same group twice.
    #[error("{launch}: {key}: measured twice")]
    DuplicateGroup {
        /// Name of the launch.
        launch: String,
        /// Key of the group.
        key: GroupKey,
    },
    /// A time to analyse is not a number, or longer than 292 years.
    #[error("{launch}: {key}: a time is not a number, or longer than 292 years")]
    InvalidTime {
        /// Name of the launch.
        launch: String,
        /// Key of the group.
        key: GroupKey,
    },
}

fn value_or_none(value: &Option<String>) -> String {
    let quoted = value.as_ref().map(|value| format!("\"{value}\""));
    quoted.unwrap_or_else(|| "none".to_owned())
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
