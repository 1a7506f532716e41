//! Corrected copy of an archive: rank 0 creates it, and every rank writes its own locations.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use downbeat_clock_core::Duration;
use downbeat_sync::{Comm, collective};
use downbeat_trace::CorrectedTrace;
use downbeat_trace::formats::otf2::{Archive, ArchiveCopy, ArchiveTimes, Origin, WriteOptions};
use downbeat_trace::ranks::{TracePart, common_span, gather_words};

use crate::trace::archive_report::ArchiveReport;
use crate::trace::files::archive_failure;
use crate::{Failure, agree};

/// Writes the corrected archive. All ranks call this, each with the timestamps of its own locations,
/// and get the same report.
pub(super) async fn write<C: Comm>(
    (archive, origin): &(Archive, Origin),
    corrected: &CorrectedTrace,
    (folder, writing): (&Path, WriteOptions),
    comm: &C,
) -> Result<ArchiveReport, Failure> {
    let (part, times) = (&corrected.trace, &corrected.times);
    let (copy, place) = begin_copy(archive, folder, comm).await?;
    let rank = comm.rank();
    let mut times = ArchiveTimes {
        trace: part,
        origin,
        times,
        selected: &|location| part.owner(location) == Some(rank),
        shift: Duration::ZERO,
    };
    let moved = common_span(times.moved_span(), comm).await;
    let mut span = moved.map_err(Failure::run)?;
    times.shift = archive.shift_for(span.map(|[first, _]| first));
    if times.shift != Duration::ZERO {
        // All locations move.
        let all = common_span(times.moved_span(), comm).await;
        span = all.map_err(Failure::run)?;
    }
    let written = archive.write_locations(times, &place, writing);
    let written = agree(comm, written.map_err(archive_failure)).await?;
    let covered = match (&copy, span) {
        (Some(copy), Some(span)) => archive.cover(copy.part(), span, times.shift),
        _ => Ok(()),
    };
    agree(comm, covered.map_err(archive_failure)).await?;
    let instants = archive.moved_instants(times).map_err(archive_failure);
    let instants = agree(comm, instants).await?;
    let instants = gather_words(comm, instants.into_flattened()).await;
    let instants = instants.map_err(Failure::run)?.concat();
    let moved = copy.as_ref().map_or(Ok(()), |copy| {
        archive.write_instants(copy.part(), instants.as_chunks().0.to_vec())
    });
    agree(comm, moved.map_err(archive_failure)).await?;
    let finished = copy.map_or(Ok(()), |copy| copy.finish(archive.file_name()).map(drop));
    agree(comm, finished.map_err(Failure::run)).await?;
    gather_report(written, (archive, origin), part, comm).await
}

/// Begins the copy on rank 0, which gets it. Returns the folder in which all ranks write it.
async fn begin_copy<C: Comm>(
    archive: &Archive,
    folder: &Path,
    comm: &C,
) -> Result<(Option<ArchiveCopy>, PathBuf), Failure> {
    let begun = (comm.rank() == 0)
        .then(|| archive.begin_copy(folder))
        .transpose();
    let copy = agree(comm, begun.map_err(Failure::run)).await?;
    let name = copy
        .as_ref()
        .and_then(|copy| copy.part().file_name())
        .unwrap_or_default();
    let name = collective::broadcast_bytes(comm, name.as_encoded_bytes().to_vec()).await;
    let place = folder.with_file_name(name_of(name.map_err(Failure::run)?));
    Ok((copy, place))
}

/// Returns the report on the locations that all ranks have written, in the order of the archive.
async fn gather_report<C: Comm>(
    written: Vec<(usize, bool)>,
    (archive, origin): (&Archive, &Origin),
    part: &TracePart,
    comm: &C,
) -> Result<ArchiveReport, Failure> {
    let written = written.into_iter();
    let written = written.flat_map(|(knots, is_rewritten)| [knots as u64, is_rewritten.into()]);
    let all = gather_words(comm, written.collect()).await;
    let all = all.map_err(Failure::run)?;
    let mut all: Vec<_> = all.iter().map(|words| words.as_chunks().0.iter()).collect();
    let mut report = ArchiveReport::default();
    for (location, found) in origin.locations.iter().zip(archive.locations()) {
        let owner = part.owner(*location).unwrap_or(0);
        let [knots, rewritten] = all[owner as usize].next().copied().unwrap_or([0; 2]);
        report.clock_offsets += knots as usize;
        if rewritten > 0 {
            report.rewritten.push(found.name.clone());
        }
    }
    Ok(report)
}

#[cfg(unix)]
fn name_of(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn name_of(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
