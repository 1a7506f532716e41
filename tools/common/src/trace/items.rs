//! What a trace says, from whatever it is kept in.

use std::path::Path;

use downbeat_files::FileError;
use downbeat_trace::formats::{Item, TraceReader};

use super::files::is_archive;
use crate::Failure;

/// Hands over all that a trace or an archive says; clock offsets of an archive are added to its times, or else they are
/// sessions. How many events of an archive were of kinds that no trace has.
///
/// # Errors
/// When it cannot be read, is none, or what is handed over cannot be taken.
pub fn for_each_item(
    path: &Path,
    apply_offsets: bool,
    mut take: impl FnMut(&Item<'_>) -> Result<(), FileError>,
) -> Result<u64, Failure> {
    if is_archive(path) {
        return of_archive(path, apply_offsets, take);
    }
    if !apply_offsets {
        return Err(super::files::is_no_archive("--as-recorded", path));
    }
    let bad = |why: FileError| Failure::Input(why.to_string());
    let mut reader = TraceReader::open(path).map_err(bad)?;
    while let Some(item) = reader.next_item().map_err(bad)? {
        take(&item).map_err(|why| unwritable(path, why))?;
    }
    Ok(0)
}

/// What cannot be written because of what the input is, or else because of where it goes.
pub fn unwritable(input: &Path, why: FileError) -> Failure {
    match why {
        FileError::Unwritable(why) => Failure::Input(format!("{}: {why}", input.display())),
        why => Failure::run(why),
    }
}

#[cfg(feature = "otf2")]
fn of_archive(
    path: &Path,
    offsets: bool,
    mut take: impl FnMut(&Item<'_>) -> Result<(), FileError>,
) -> Result<u64, Failure> {
    use downbeat_trace::formats::otf2::{Archive, Otf2Error, ReadOptions};

    /// Why it is not handed over to its end.
    struct Ended(Failure);

    impl From<Otf2Error> for Ended {
        fn from(why: Otf2Error) -> Self {
            Self(Failure::Input(why.to_string()))
        }
    }

    let mut all = || {
        let archive = Archive::open(path)?;
        let reading = ReadOptions {
            offsets,
            ..ReadOptions::default()
        };
        archive.for_each_item(&reading, |item| {
            take(item).map_err(|why| Ended(unwritable(path, why)))
        })
    };
    all().map_err(|Ended(why)| why)
}

#[cfg(not(feature = "otf2"))]
fn of_archive(
    path: &Path,
    _: bool,
    _: impl FnMut(&Item<'_>) -> Result<(), FileError>,
) -> Result<u64, Failure> {
    Err(super::recording::without_otf2(path))
}
