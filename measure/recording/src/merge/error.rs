//! Reasons why a recording cannot be merged.

use std::fmt;
use std::path::PathBuf;

use downbeat_files::FileError;

/// Reason why the files of ranks cannot become one trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// A file cannot be read or written, or is damaged.
    File(FileError),
    /// The folder has no file of a rank.
    Empty(PathBuf),
    /// No rank got through `MPI_Init`.
    Uninitialized(PathBuf),
    /// Two files are of the same rank.
    Twice(u32, [PathBuf; 2]),
    /// Two files are of programs with different numbers of ranks.
    Sizes([u32; 2], [PathBuf; 2]),
    /// Two files are of different runs.
    Runs([PathBuf; 2]),
}

impl From<FileError> for MergeError {
    fn from(why: FileError) -> Self {
        Self::File(why)
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => why.fmt(f),
            Self::Empty(folder) => write!(
                f,
                "{}: it has no recording of a rank, rank-*.{}: the program did not call MPI_Init of a shared library of MPI, or the \
                 parents of its ranks were killed, and `downbeat record --clean` collects what is still in memory",
                folder.display(),
                crate::ENDING
            ),
            Self::Uninitialized(folder) => write!(
                f,
                "{}: no rank got through MPI_Init, so that none has a clock",
                folder.display()
            ),
            Self::Twice(rank, [a, b]) => write!(
                f,
                "{}: it is of rank {rank}, as {} is: the folder has recordings of two programs",
                b.display(),
                a.display()
            ),
            Self::Runs([a, b]) => write!(
                f,
                "{}: it is of another run than {}: the folder has recordings of two runs",
                b.display(),
                a.display()
            ),
            Self::Sizes([a, b], [of_a, of_b]) => write!(
                f,
                "{}: its program had {b} ranks, and that of {} had {a}: the folder has recordings of two programs",
                of_b.display(),
                of_a.display()
            ),
        }
    }
}

impl std::error::Error for MergeError {}
