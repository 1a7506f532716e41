//! Trace in a file: read as a whole, and written back with other times.

use std::path::{Path, PathBuf};

use crate::ranks::Load;
use crate::{Matching, Trace, TraceBuilder};
use downbeat_clock_core::{Global, Timestamp};

use super::item::Item;
use super::loading::Loading;
use super::sessions::{Sessions, changed, samples_of};
use super::{TraceReader, TraceWriter};
use downbeat_files::{Checksums, FileError};

/// Trace that was read from a file, with the data that a correction needs. Other contents, such as
/// regions, are only in the file.
///
/// For a file that ranks share, `T` can be a part of the trace.
#[derive(Debug)]
pub struct TraceFile<T = Trace> {
    /// Path of the file.
    pub path: PathBuf,
    /// Events. Times are those of the file, from the clocks of the locations.
    pub trace: T,
    /// Names of the locations, in their order.
    pub names: Vec<String>,
    /// Samples of the locations' clocks.
    pub sessions: Sessions,
    /// Location whose clock the others were compared with, by its number.
    pub master: u32,
    /// For every location, the number of the location that represents its process, mostly its own,
    /// and its number of events.
    pub loads: Vec<Load>,
}

/// Error of a file that cannot be read, with its position.
#[derive(Debug)]
pub struct Unread<E = FileError> {
    /// Position of the error: greater if more was read before it.
    pub after: u64,
    /// Reason of the failure.
    pub why: Box<E>,
}

impl TraceFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is not a valid trace, or its events do not match.
    pub fn read(path: &Path, matching: Matching) -> Result<Self, FileError> {
        Self::read_with_builder(path, TraceBuilder::new(matching), Checksums::Verify, 1)
    }

    /// Reads a file into an empty builder, on this number of threads; a file that was
    /// edited by hand needs [`Checksums::Ignore`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with_builder(
        path: &Path,
        mut builder: TraceBuilder,
        checksums: Checksums,
        workers: usize,
    ) -> Result<Self, FileError> {
        let file = TraceFile::load_counting(path, &mut builder, checksums, &mut 0)?;
        let trace = builder
            .finish_on(workers)
            .map_err(|why| FileError::content(path, why.to_string()))?;
        Ok(file.with(trace))
    }

    /// Returns the trace, and the file without it.
    pub fn split(self) -> (Trace, TraceFile<()>) {
        let Self {
            path,
            trace,
            names,
            sessions,
            master,
            loads,
        } = self;
        (
            trace,
            TraceFile {
                path,
                trace: (),
                names,
                sessions,
                master,
                loads,
            },
        )
    }

    /// Writes the same trace to another file, with other times of events and other local times of
    /// samples. Everything else is unchanged, and identical to the byte.
    ///
    /// # Errors
    /// If the file cannot be written, or the original has changed or cannot be read again.
    pub fn write_corrected(
        &self,
        path: &Path,
        times: &[impl AsRef<[Timestamp<Global>]>],
        sessions: &Sessions,
    ) -> Result<(), FileError> {
        write_corrected([&self.path, path], times, sessions)
    }
}

impl TraceFile<()> {
    /// Reads the events of a rank into `builder`, which the caller then finishes.
    ///
    /// # Errors
    /// If the file cannot be read, is not a valid trace, or its events cannot be added.
    pub fn load(
        path: &Path,
        builder: &mut TraceBuilder,
        checksums: Checksums,
    ) -> Result<Self, Unread> {
        let mut after = 0;
        Self::load_counting(path, builder, checksums, &mut after).map_err(|why| Unread {
            after,
            why: Box::new(why),
        })
    }

    /// Reads a file into an empty builder.
    fn load_counting(
        path: &Path,
        builder: &mut TraceBuilder,
        checksums: Checksums,
        after: &mut u64,
    ) -> Result<Self, FileError> {
        let mut reader = TraceReader::open(path)?.with_checksums(checksums);
        let mut loading = Loading::new(builder);
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                return Err(reader.error(why));
            }
            *after += 1;
        }
        Ok(Self::of(loading, path))
    }

    /// Returns the file that was loaded.
    fn of(loading: Loading<'_>, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            trace: (),
            names: loading.names,
            sessions: loading.sessions,
            master: loading.master,
            loads: loading.loads,
        }
    }

    /// Returns [`TraceFile::loads`] without loading the trace, for as much of the file as is
    /// readable; does not verify it.
    pub fn loads_of(path: &Path) -> Vec<Load> {
        let mut loads: Vec<Load> = vec![];
        let Ok(mut reader) = TraceReader::open(path) else {
            return loads;
        };
        while let Ok(Some(item)) = reader.next_item() {
            match item {
                Item::Event { location, .. } => loads[location as usize].events += 1,
                item => add_load(&mut loads, &item),
            }
        }
        loads
    }

    /// Returns the file with another `trace`.
    pub fn with<T>(self, trace: T) -> TraceFile<T> {
        let Self {
            path,
            trace: (),
            names,
            sessions,
            master,
            loads,
        } = self;
        TraceFile {
            path,
            trace,
            names,
            sessions,
            master,
            loads,
        }
    }
}

/// Writes the trace of a file to another one, as [`TraceFile::write_corrected`] does.
///
/// # Errors
/// If it cannot be written, or the original has changed or cannot be read again.
pub fn write_corrected(
    [from, to]: [&Path; 2],
    times: &[impl AsRef<[Timestamp<Global>]>],
    sessions: &Sessions,
) -> Result<(), FileError> {
    let mut times: Vec<_> = times.iter().map(|times| times.as_ref().iter()).collect();
    let next = |location: u32| times.get_mut(location as usize)?.next().copied();
    let (writer, windows_end) = copy([from, to], next, sessions)?;
    if times.iter_mut().any(|rest| rest.next().is_some()) {
        return Err(changed(from));
    }
    writer.finish_line(windows_end)
}

/// Copies a trace with other samples, and times that `next_time` returns for the next
/// event of a location. Returns the incomplete file, and the form of its last line.
pub(super) fn copy(
    [from, to]: [&Path; 2],
    mut next_time: impl FnMut(u32) -> Option<Timestamp<Global>>,
    sessions: &Sessions,
) -> Result<(TraceWriter, bool), FileError> {
    let mut samples = samples_of(sessions);
    // It was verified when it was read.
    let mut reader = TraceReader::open(from)?.with_checksums(Checksums::Ignore);
    let mut writer = TraceWriter::create_line(to, reader.windows_end())?;
    while let Some((mut item, windows_end)) = reader.next_line()? {
        match &mut item {
            Item::Event { location, time, .. } => {
                *time = next_time(*location).ok_or_else(|| changed(from))?;
            }
            Item::Sample {
                location, local, ..
            } => {
                let samples = samples.get_mut(*location as usize);
                let next = samples.and_then(Iterator::next);
                *local = next.ok_or_else(|| changed(from))?.at;
            }
            _ => {}
        }
        writer.write_line(&item, windows_end)?;
    }
    if samples.iter_mut().any(|rest| rest.next().is_some()) {
        return Err(changed(from));
    }
    Ok((writer, reader.windows_end()))
}

/// Adds the location that `item` defines, if any, without events.
fn add_load(loads: &mut Vec<Load>, item: &Item<'_>) {
    match *item {
        Item::Location { place, .. } => loads.push(Load {
            process: loads.len() as u32,
            place,
            events: 0,
        }),
        Item::Thread { rank, .. } => loads.push(Load {
            events: 0,
            ..loads[rank as usize]
        }),
        _ => {}
    }
}
