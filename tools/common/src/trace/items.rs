//! Iteration over the items of a trace file or an OTF2 archive.

use std::path::Path;

use downbeat_files::{Checksums, FileError};
use downbeat_trace::Matching;
use downbeat_trace::formats::{Item, TraceReader};

use super::files::is_archive;
use crate::Failure;
use crate::cli::unreadable;

/// Options for reading items.
#[derive(Clone, Copy, Debug)]
pub struct ReadItems {
    /// True to add the clock offsets of an archive to its timestamps; otherwise they become its
    /// sessions.
    pub apply_offsets: bool,
    /// True to accept mistakes of an archive that other readers accept.
    pub lenient: bool,
    /// Treatment of the checksums of a file.
    pub checksums: Checksums,
}

/// Calls `take` with every item of a trace file or an archive. The clock offsets of an archive are
/// added to its timestamps, or else become its sessions. Returns the number of events of an archive
/// that were left out because no trace file has their kind.
///
/// # Errors
/// If the input cannot be read or is not a trace, or `take` fails.
pub fn for_each_item(
    path: &Path,
    reading: ReadItems,
    mut take: impl FnMut(&Item<'_>) -> Result<(), FileError>,
) -> Result<u64, Failure> {
    let ReadItems {
        apply_offsets,
        lenient,
        checksums,
    } = reading;
    if is_archive(path) {
        return of_archive(path, reading, take);
    }
    if lenient {
        return Err(super::files::is_no_archive("--lenient", path));
    }
    if !apply_offsets {
        return Err(super::files::is_no_archive("--as-recorded", path));
    }
    let bad = |why: FileError| Failure::Input(unreadable(why));
    let mut reader = TraceReader::open(path)
        .map_err(bad)?
        .with_checksums(checksums);
    while let Some(item) = reader.next_item().map_err(bad)? {
        take(&item).map_err(|why| unwritable(path, why))?;
    }
    Ok(0)
}

/// Converts an error of the output to a failure; one that the content of the input causes names the
/// input.
pub fn unwritable(input: &Path, why: FileError) -> Failure {
    match why {
        FileError::Unwritable(why) => Failure::Input(format!("{}: {why}", input.display())),
        why => Failure::run(why),
    }
}

fn of_archive(
    path: &Path,
    reading: ReadItems,
    mut take: impl FnMut(&Item<'_>) -> Result<(), FileError>,
) -> Result<u64, Failure> {
    use downbeat_trace::formats::otf2::{Archive, Otf2Error, ReadOptions};

    /// Reason for which the iteration ended early.
    struct Ended(Failure);

    impl From<Otf2Error> for Ended {
        fn from(why: Otf2Error) -> Self {
            Self(Failure::Input(why.to_string()))
        }
    }

    let mut all = || {
        let archive = Archive::open(path)?;
        let reading = ReadOptions {
            offsets: reading.apply_offsets,
            matching: Matching {
                lenient: reading.lenient,
                ..Matching::default()
            },
            ..ReadOptions::default()
        };
        archive.for_each_item(&reading, |item| {
            take(item).map_err(|why| Ended(unwritable(path, why)))
        })
    };
    all().map_err(|Ended(why)| why)
}
