//! Corrected trace whose times are in temporary files.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::{Checksums, FileError};

use super::leeways::StreamedLeeways;
use super::{StreamedSource, StreamedTrace};
use crate::formats::blocks::{CopiedChunk, InOrder, Layout, copy_with, encode};
use crate::formats::chunk::Block;
use crate::formats::file::copy;
use crate::formats::index::LocationLoad;
use crate::formats::numbers::FileNumbers;
use crate::formats::otf2::{
    ArchiveTimes, CorrectedTimes, Otf2Error, Times, WriteOptions, WrittenArchive,
};
use crate::formats::sessions::changed;
use crate::formats::spill::{NumberCursor, NumberLists};
use crate::formats::{Sessions, TraceFormat};
use crate::{Correction, LocationId};

/// Result of [`StreamedTrace::correct`].
#[derive(Debug)]
pub struct CorrectedStream<'a> {
    pub(super) trace: &'a StreamedTrace,
    /// Report on the correction.
    pub report: Correction,
    /// Corrected samples of the locations' clocks.
    pub(super) sessions: Sessions,
    pub(super) times: NumberLists,
    /// For an archive, the ranges in which its times may vary.
    pub(super) leeways: Option<StreamedLeeways>,
}

impl CorrectedStream<'_> {
    /// Writes the trace as a copy of its archive, as [`Archive::write_corrected`] does.
    ///
    /// # Errors
    /// As there; and if the trace was read from a file.
    ///
    /// [`Archive::write_corrected`]: crate::formats::otf2::Archive::write_corrected
    pub fn write_archive(&self, folder: &Path, rewrite: bool) -> Result<WrittenArchive, Otf2Error> {
        let (Some((archive, origin)), Some(leeways)) = (self.trace.archive(), &self.leeways) else {
            return Err(FileError::content(folder, "the trace was read from a file").into());
        };
        let times = &SpilledTimes {
            offsets: origin.offsets(),
            corrected: self,
            leeways,
        };
        // Temporary files have one position.
        let writing = WriteOptions {
            rewrite,
            workers: 1,
        };
        archive.write_copy(ArchiveTimes { origin, times }, folder, writing)
    }

    /// Writes the trace to another file.
    ///
    /// # Errors
    /// If the trace was read from an archive, its file has changed or cannot be read again, or the
    /// other one cannot be written.
    pub fn write(&self, path: &Path, format: TraceFormat) -> Result<(), FileError> {
        let paths = [&*self.trace.path, path];
        let StreamedSource::File(_, numbers) = &self.trace.source else {
            return Err(FileError::content(
                path,
                "the trace was read from an archive",
            ));
        };
        if format == TraceFormat::Binary
            && let Ok(written) = self.write_chunks(paths, numbers)
        {
            return written;
        }
        let mut next = self.next_time(numbers);
        let mut written = 0;
        let (writer, windows_end) = copy(paths, format, &self.sessions, |location, _, _| {
            written += 1;
            next(location)
        })?;
        match written == self.trace.census.events {
            true => writer.finish_line(windows_end),
            false => Err(changed(&self.trace.path)),
        }
    }

    /// Does the same for a file whose events are in chunks, without decoding the rest.
    fn write_chunks(
        &self,
        paths: [&Path; 2],
        numbers: &FileNumbers,
    ) -> Result<Result<(), FileError>, InOrder> {
        let layout = Layout::read(paths[0], Checksums::Ignore, |_| Ok(()))?;
        let locations = (0..).zip(&layout.loads);
        let fits = |(number, load): (u32, &LocationLoad)| {
            let location = numbers.location(number);
            location.is_some_and(|location| self.times.count(location) == load.events)
        };
        if layout.loads.len() != self.trace.names.len() || !locations.into_iter().all(fits) {
            return Ok(Err(changed(paths[0])));
        }
        let mut next = self.next_time(numbers);
        let mut encode_block = |block: &Block| {
            let times = (0..block.events).map(|_| next(block.location));
            let times = times.collect::<Result<Vec<_>, _>>()?;
            let mut encoded = vec![];
            encode(&mut encoded, &times, block.events);
            Ok(encoded)
        };
        let mut encode_chunk = |chunk: &CopiedChunk| {
            let blocks = chunk.head.blocks.iter().map(&mut encode_block);
            Ok(chunk.with(&blocks.collect::<Result<Vec<_>, FileError>>()?))
        };
        copy_with(paths, &layout, &self.sessions, 1, |chunks| {
            chunks.iter().map(&mut encode_chunk).collect()
        })
    }

    /// Returns a function for the next time of each location of the file.
    fn next_time<'a>(
        &'a self,
        numbers: &'a FileNumbers,
    ) -> impl FnMut(u32) -> Result<Timestamp<Global>, FileError> + 'a {
        let mut cursors = NumberCursor::all(self.trace.census.ids());
        move |number| {
            let location = numbers.location(number);
            let cursor = location.and_then(|location| cursors.get_mut(location.index()));
            let time = cursor.map_or(Ok(None), |cursor| cursor.next(&self.times))?;
            let time = time.map(Timestamp::from_nanos);
            time.ok_or_else(|| changed(&self.trace.path))
        }
    }
}

/// Times in temporary files, for an archive.
struct SpilledTimes<'a> {
    /// True if the clock offsets of the archive were added.
    offsets: bool,
    corrected: &'a CorrectedStream<'a>,
    leeways: &'a StreamedLeeways,
}

impl CorrectedTimes for SpilledTimes<'_> {
    fn clock(&self, location: LocationId) -> Option<u32> {
        let clocks = self.corrected.trace.census.clocks();
        clocks.get(location.index()).copied()
    }

    fn count(&self, location: LocationId) -> Option<u64> {
        Some(self.corrected.times.count(location))
    }

    fn is_unmoved(&self, location: LocationId) -> bool {
        self.offsets && !self.leeways.of(location).is_moved
    }

    fn span(&self, location: LocationId) -> Option<[Timestamp<Global>; 2]> {
        self.leeways.of(location).span
    }

    fn times(&self, location: LocationId) -> Times<'_, Timestamp<Global>> {
        let mut cursor = NumberCursor::new(location);
        let times = std::iter::from_fn(move || cursor.next(&self.corrected.times).transpose());
        Box::new(times.map(|time| time.map(Timestamp::from_nanos)))
    }

    fn leeway(&self, clock: LocationId) -> Times<'_, (LocationId, [Timestamp<Global>; 2])> {
        Box::new(self.leeways.of_clock(clock, &self.corrected.times))
    }
}
