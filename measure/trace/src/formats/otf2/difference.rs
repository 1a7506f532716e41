//! Comparison of two archives apart from times.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Otf2Error;
use super::anchor::ArchiveAnchor;
use super::event_file::EventFile;
use super::files::{self, folder, globals};
use super::offsets::CLOCK_OFFSET;
use super::record::{order, records};

/// Returns the first difference of `other` from `one` as one line; `None` if they differ in nothing
/// but clock offsets and times of events. All other files and records are compared byte by byte,
/// also those that are not used for traces.
///
/// # Errors
/// When one of them cannot be read.
pub fn first_difference(one: &Path, other: &Path) -> Result<Option<String>, Otf2Error> {
    let chunks = [one, other].map(|anchor| ArchiveAnchor::read(anchor, &globals(anchor)));
    let [ours, theirs] = chunks;
    let chunks = [ours?, theirs?];
    let sides = [one, other].map(|anchor| names(anchor).map(|names| (anchor, names)));
    let [ours, theirs] = sides;
    let (ours, theirs) = (ours?, theirs?);
    for name in ours.1.union(&theirs.1) {
        let [one, other] = [&ours, &theirs].map(|(anchor, _)| path(anchor, name));
        let missing = [(&ours.1, &one), (&theirs.1, &other)]
            .into_iter()
            .find(|(names, _)| !names.contains(name));
        let (inside, kind) = (name.starts_with('/'), name.rsplit('.').next());
        let found = match (inside, kind) {
            // Local definitions may be missing.
            (true, Some("def")) => definitions([&one, &other], chunks)?,
            _ if missing.is_some() => {
                missing.map(|(_, path)| format!("{}: this file does not exist", path.display()))
            }
            (true, Some("evt")) => events([&one, &other], chunks)?,
            _ if read(&one)? == read(&other)? => None,
            _ => Some(format!(
                "{}: differs from {}",
                other.display(),
                one.display()
            )),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns the names of the files without the archive's name. OTF2 only writes names in UTF-8.
fn names(anchor: &Path) -> Result<BTreeSet<String>, Otf2Error> {
    let stem = stem(anchor);
    let all = files::all(anchor)?.into_iter();
    Ok(all
        .filter_map(|path| Some(path.to_string_lossy().strip_prefix(&stem)?.to_owned()))
        .collect())
}

fn stem(anchor: &Path) -> String {
    anchor
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn path(anchor: &Path, name: &str) -> PathBuf {
    folder(anchor).join(stem(anchor) + name)
}

fn read(path: &Path) -> Result<Vec<u8>, Otf2Error> {
    fs::read(path).map_err(Otf2Error::io(path))
}

fn not_here(one: &Path, other: &Path, at: impl core::fmt::Display) -> String {
    format!(
        "{}: {at}: differs from {} here",
        other.display(),
        one.display()
    )
}

/// Compares local definitions except clock offsets.
fn definitions(
    [one, other]: [&Path; 2],
    [our_chunks, their_chunks]: [ArchiveAnchor; 2],
) -> Result<Option<String>, Otf2Error> {
    let [ours, theirs] = [one, other].map(|path| {
        if path.exists() {
            read(path)
        } else {
            Ok(vec![])
        }
    });
    let (ours, theirs) = (ours?, theirs?);
    let parse = |bytes: &[u8], path: &Path, chunk| -> Result<Vec<Vec<u8>>, Otf2Error> {
        let Some(order) = order(bytes) else {
            return Ok(vec![]);
        };
        let records =
            records(bytes, order, chunk).filter(|record| !matches!(record, Ok([CLOCK_OFFSET, ..])));
        let records: Result<_, String> = records.map(|record| record.map(<[u8]>::to_vec)).collect();
        records.map_err(|why| Otf2Error::content(path, why))
    };
    let ours = parse(&ours, one, our_chunks.definitions)?;
    let theirs = parse(&theirs, other, their_chunks.definitions)?;
    if ours == theirs {
        return Ok(None);
    }
    let same = ours
        .iter()
        .zip(&theirs)
        .take_while(|(our, their)| our == their)
        .count();
    Ok(Some(not_here(
        one,
        other,
        format_args!("definition {same} (clock offsets not counted)"),
    )))
}

/// Compares all events except their times.
fn events(
    [one, other]: [&Path; 2],
    [our_chunks, their_chunks]: [ArchiveAnchor; 2],
) -> Result<Option<String>, Otf2Error> {
    let (mut ours, mut theirs) = (
        EventFile::open(one, our_chunks.events)?,
        EventFile::open(other, their_chunks.events)?,
    );
    loop {
        let event = ours.events;
        return Ok(
            match (
                ours.next()?.map(|our| our.bytes),
                theirs.next()?.map(|their| their.bytes),
            ) {
                (None, None) => None,
                (our, their) if our == their => continue,
                (_, Some(_)) => Some(not_here(one, other, format_args!("event {event}"))),
                (_, None) => Some(format!(
                    "{}: it ends before {} does",
                    other.display(),
                    one.display()
                )),
            },
        );
    }
}
