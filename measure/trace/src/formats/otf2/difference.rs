//! Comparison of two archives apart from times.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Otf2Error;
use super::instants::{MARKER, SAMPLE, original_time_of};
use super::integrity::uncorrected;
use downbeat_otf2::raw::{BUFFER_FLUSH, CLOCK_OFFSET, CLOCK_PROPERTIES, Order, Record, records};
use downbeat_otf2::{Anchor, EventReader, EventRecord, files};

/// Returns the first difference of `other` from `one` as one line; `None` if they differ
/// in nothing but what a correction writes: clock offsets, times of events, markers,
/// snapshots and samples of thumbnails, ends of flushes, the time span, the shift of all
/// times and checksums. All other files and records are compared byte by byte, also those
/// that are not used for traces.
///
/// # Errors
/// When one of them cannot be read.
pub fn first_difference(one: &Path, other: &Path) -> Result<Option<String>, Otf2Error> {
    let chunks = [Anchor::read(one)?, Anchor::read(other)?];
    let chunks = [&chunks[0], &chunks[1]];
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
            (true, Some("def")) => compare_records([&one, &other], chunks, name)?,
            _ if missing.is_some() => {
                missing.map(|(_, path)| format!("{}: this file does not exist", path.display()))
            }
            (true, Some("evt")) => compare_events([&one, &other], chunks, |our, their| {
                timeless(our) == timeless(their)
            })?,
            (true, Some("snap")) => compare_events([&one, &other], chunks, |our, their| {
                snapshot_without_time(our) == snapshot_without_time(their)
            })?,
            (false, Some("def" | "marker" | "thumb")) => {
                compare_records([&one, &other], chunks, name)?
            }
            (false, Some("otf2")) if anchor(&one)? == anchor(&other)? => None,
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
    files::folder(anchor).join(stem(anchor) + name)
}

fn read(path: &Path) -> Result<Vec<u8>, Otf2Error> {
    fs::read(path).map_err(Otf2Error::io(path))
}

/// Returns an anchor file as it is compared: without what a correction changes.
fn anchor(path: &Path) -> Result<Vec<u8>, Otf2Error> {
    uncorrected(&read(path)?).map_err(|why| Otf2Error::content(path, why))
}

fn not_here(one: &Path, other: &Path, at: impl core::fmt::Display) -> String {
    format!(
        "{}: {at}: differs from {} here",
        other.display(),
        one.display()
    )
}

/// Returns a record of a file with this name as it is compared: without the times of
/// markers and of samples of thumbnails, and without the time span; `None` for clock
/// offsets.
fn without_times<'a>(record: Record<'a>, name: &str) -> Option<&'a [u8]> {
    let mut data = record.fields();
    match (name.rsplit('.').next(), record.kind) {
        (Some("def"), CLOCK_OFFSET) if name.starts_with('/') => None,
        (Some("def"), CLOCK_PROPERTIES) if !name.starts_with('/') => {
            let _resolution = data.u64()?;
            record.data.strip_suffix(data.remaining())
        }
        (Some("marker"), MARKER) if data.u64().and(data.u64()).is_some() => Some(data.remaining()),
        (Some("thumb"), SAMPLE) if data.u64().is_some() => Some(data.remaining()),
        _ => Some(record.bytes),
    }
}

/// Returns the records of a file with this name as they are compared; none if it is
/// missing.
fn read_records(path: &Path, name: &str, chunk: usize) -> Result<Vec<Vec<u8>>, Otf2Error> {
    let file = if path.exists() { read(path)? } else { vec![] };
    let mut all = vec![];
    if Order::of_file(&file).is_some() {
        for record in records(&file, chunk) {
            let record = record.map_err(|why| Otf2Error::content(path, why))?;
            all.extend(without_times(record, name).map(<[u8]>::to_vec));
        }
    }
    Ok(all)
}

/// Compares files with this name that consist of definitions, markers or thumbnails.
fn compare_records(
    [one, other]: [&Path; 2],
    [our_chunks, their_chunks]: [&Anchor; 2],
    name: &str,
) -> Result<Option<String>, Otf2Error> {
    let ours = read_records(one, name, our_chunks.definition_chunk)?;
    let theirs = read_records(other, name, their_chunks.definition_chunk)?;
    if ours == theirs {
        return Ok(None);
    }
    let pairs = ours.iter().zip(&theirs);
    let same = pairs.take_while(|(our, their)| our == their).count();
    let noun = if name.ends_with(".def") {
        "definition"
    } else {
        "record"
    };
    let at = format_args!("{noun} {same} (times not counted)");
    Ok(Some(not_here(one, other, at)))
}

/// Returns an event as it is compared: without its time, and without the end of a flush.
fn timeless(event: EventRecord<'_>) -> &[u8] {
    match event.kind {
        BUFFER_FLUSH => event.bytes.strip_suffix(event.data).unwrap_or(event.bytes),
        _ => event.bytes,
    }
}

/// Returns a record of a snapshot as it is compared: without its time, and that of the
/// event that it repeats.
fn snapshot_without_time(record: EventRecord<'_>) -> Vec<u8> {
    let mut bytes = record.bytes.to_vec();
    if let Some((at, time)) = original_time_of(record) {
        bytes[at..at + size_of_val(&time)].fill(0);
    }
    bytes
}

/// Compares the events of two files, or the records of their snapshots.
fn compare_events(
    [one, other]: [&Path; 2],
    [our_chunks, their_chunks]: [&Anchor; 2],
    is_same: impl Fn(EventRecord<'_>, EventRecord<'_>) -> bool,
) -> Result<Option<String>, Otf2Error> {
    let is_empty = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() == 0);
    if is_empty(one) && is_empty(other) {
        return Ok(None);
    }
    let (mut ours, mut theirs) = (
        EventReader::open(one, our_chunks.event_chunk, Arc::default())?,
        EventReader::open(other, their_chunks.event_chunk, Arc::default())?,
    );
    loop {
        let event = ours.count();
        return Ok(match (ours.next()?, theirs.next()?) {
            (None, None) => None,
            (Some(our), Some(their)) if is_same(our, their) => continue,
            (_, Some(_)) => Some(not_here(one, other, format_args!("event {event}"))),
            (_, None) => Some(format!(
                "{}: it ends before {} does",
                other.display(),
                one.display()
            )),
        });
    }
}
