//! Corrected copy of an archive: rank 0 creates it, and every rank writes its own locations.

use std::ffi::OsString;
use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_sync::{Comm, CommError, collective};
use downbeat_trace::distributed::{TracePart, common_span};
use downbeat_trace::formats::otf2::{Archive, Origin, WriteOptions};
use downbeat_trace::{Array, LocationId};

use crate::trace::archive_report::ArchiveReport;
use crate::trace::files::archive_failure;
use crate::{Failure, agree};

/// Writes the corrected archive. All ranks call this, each with the timestamps of its own locations,
/// and get the same report.
pub(super) async fn write<C: Comm>(
    (archive, origin): &(Archive, Origin),
    part: &TracePart,
    times: &[Array<Timestamp<Global>>],
    (folder, writing): (&Path, WriteOptions),
    comm: &C,
) -> Result<ArchiveReport, Failure> {
    let begun = (comm.rank() == 0)
        .then(|| archive.begin_copy(folder))
        .transpose();
    let copy = agree(comm, begun.map_err(Failure::run)).await?;
    let name = copy
        .as_ref()
        .and_then(|copy| copy.part().file_name())
        .unwrap_or_default();
    let name = tell(comm, name.as_encoded_bytes())
        .await
        .map_err(Failure::run)?;
    let place = folder.with_file_name(name_of(name));

    let is_own = |location: LocationId| part.owner(location) == Some(comm.rank());
    let written = archive.write_locations(part.as_ref(), origin, times, &place, writing, is_own);
    let mut written = agree(comm, written.map_err(archive_failure))
        .await?
        .into_iter();
    let span = archive.moved_span(part.as_ref(), origin, times, is_own);
    let span = common_span(span, comm).await.map_err(Failure::run)?;
    let covered = match (&copy, span) {
        (Some(copy), Some(span)) => archive.cover(copy.part(), span),
        _ => Ok(()),
    };
    agree(comm, covered.map_err(archive_failure)).await?;
    let instants = archive.moved_instants(part.as_ref(), origin, times, is_own);
    let instants = agree(comm, instants.map_err(archive_failure)).await?;
    let instants = gather(comm, instants).await.map_err(Failure::run)?;
    let moved = copy
        .as_ref()
        .map_or(Ok(()), |copy| archive.write_instants(copy.part(), instants));
    agree(comm, moved.map_err(archive_failure)).await?;
    let finished = copy.map_or(Ok(()), |copy| copy.finish().map(drop));
    agree(comm, finished.map_err(Failure::run)).await?;

    let mut all = Vec::with_capacity(origin.locations.len());
    for location in &origin.locations {
        let own = if is_own(*location) {
            written.next()
        } else {
            None
        };
        let own = own.map_or([0; 2], |(knots, is_rewritten)| {
            [knots as u64, is_rewritten.into()]
        });
        let sum = collective::all_reduce(comm, own, |a, b| [a[0] + b[0], a[1] + b[1]]);
        let [knots, rewritten] = sum.await.map_err(Failure::run)?;
        all.push((knots as usize, rewritten > 0));
    }
    Ok(ArchiveReport::of(archive, all))
}

/// Returns the numbers of all ranks on rank 0.
async fn gather<C: Comm>(comm: &C, mut own: Vec<[u64; 2]>) -> Result<Vec<[u64; 2]>, CommError> {
    for other in 1..comm.size() {
        let count = if comm.rank() == other { own.len() } else { 0 };
        let count = collective::all_reduce(comm, count as u64, |one, other| one + other).await?;
        let mut bytes = vec![0; 16 * count as usize];
        if count > 0 && comm.rank() == 0 {
            comm.recv_bytes(other, &mut bytes).await?;
            let words = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes);
            own.extend(words.collect::<Vec<_>>().as_chunks().0);
        } else if count > 0 && comm.rank() == other {
            let words = own.as_flattened().iter();
            bytes = words.flat_map(|word| word.to_le_bytes()).collect();
            comm.send_bytes(0, &bytes).await?;
        }
    }
    Ok(own)
}

/// Returns the text of rank 0 on all ranks.
async fn tell<C: Comm>(comm: &C, text: &[u8]) -> Result<Vec<u8>, CommError> {
    let length = collective::broadcast(comm, text.len() as u64).await?;
    if comm.rank() != 0 {
        let mut told = vec![0; length as usize];
        comm.recv_bytes(0, &mut told).await?;
        return Ok(told);
    }
    for other in 1..comm.size() {
        comm.send_bytes(other, text).await?;
    }
    Ok(text.to_vec())
}

#[cfg(unix)]
fn name_of(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn name_of(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
