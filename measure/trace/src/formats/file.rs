//! Trace in a file: read as a whole, and written back with other times.

use std::path::{Path, PathBuf};

use downbeat_clock_core::spline::SplineKnot;
use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::{Checksums, FileError, NewFile};

use super::item::Item;
use super::sessions::{Sessions, add_sample};
use super::{TraceReader, TraceWriter};
use crate::ranks::LocationLoad;
use crate::{LocationId, Matching, Place, Trace, TraceBuilder, TraceError};

/// File from which a trace was read, with the data that a correction needs. Other
/// contents, such as regions, are only in the file.
#[derive(Debug)]
pub struct TraceFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Names of the locations, in their order.
    pub names: Vec<String>,
    /// Samples of the locations' clocks.
    pub sessions: Sessions,
    /// Location whose clock the others were compared with, by its number.
    pub master: u32,
    /// For every location, the number of the location that represents its process, mostly its own,
    /// and its number of events.
    pub loads: Vec<LocationLoad>,
}

/// Error of a file that cannot be read, with its position.
#[derive(Debug)]
pub struct UnreadableFile<E = FileError> {
    /// Position of the error: greater if more was read before it.
    pub after: u64,
    /// Reason of the failure.
    pub why: Box<E>,
}

impl TraceFile {
    /// Reads a file. Times of the trace are those of the file, from the clocks of the
    /// locations.
    ///
    /// # Errors
    /// If it cannot be read, is not a valid trace, or its events do not match.
    pub fn read(path: &Path, matching: Matching) -> Result<(Trace, Self), FileError> {
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
    ) -> Result<(Trace, Self), FileError> {
        let file = Self::load(path, &mut builder, checksums).map_err(|unread| *unread.why)?;
        let trace = builder.finish_on(workers);
        let trace = trace.map_err(|why| FileError::content(path, why.to_string()))?;
        Ok((trace, file))
    }

    /// Reads the events of the locations that `builder` owns, which the caller then
    /// finishes.
    ///
    /// # Errors
    /// If the file cannot be read, is not a valid trace, or its events cannot be added.
    pub fn load(
        path: &Path,
        builder: &mut TraceBuilder,
        checksums: Checksums,
    ) -> Result<Self, UnreadableFile> {
        let (mut file, mut after) = (Self::new(path), 0);
        match file.add_items(builder, checksums, &mut after) {
            Ok(()) => Ok(file),
            Err(why) => Err(UnreadableFile {
                after,
                why: Box::new(why),
            }),
        }
    }

    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            names: vec![],
            sessions: vec![],
            master: 0,
            loads: vec![],
        }
    }

    /// Adds all items of the file, and counts them. An empty builder gives locations and
    /// communicators the numbers of the file.
    fn add_items(
        &mut self,
        builder: &mut TraceBuilder,
        checksums: Checksums,
        items: &mut u64,
    ) -> Result<(), FileError> {
        let mut reader = TraceReader::open(&self.path)?.with_checksums(checksums);
        let mut events = 0;
        while let Some(item) = reader.next_item()? {
            let added = match item {
                Item::Event {
                    location,
                    time,
                    event,
                } => {
                    self.loads[location as usize].events += 1;
                    events += 1;
                    let location = LocationId(location);
                    match builder.owns(location) {
                        true => {
                            builder.set_position(events - 1);
                            builder.push(location, time, event)
                        }
                        false => Ok(()),
                    }
                }
                item => self.define(&item, builder),
            };
            added.map_err(|why| reader.error(why.to_string()))?;
            *items += 1;
        }
        Ok(())
    }

    /// Adds a definition or a sample.
    fn define(&mut self, item: &Item<'_>, builder: &mut TraceBuilder) -> Result<(), TraceError> {
        match *item {
            Item::Location { place, name } => {
                builder.add_location(place)?;
                self.add_location(self.loads.len() as u32, place, name);
            }
            Item::Thread { rank, name } => {
                builder.add_thread(LocationId(rank))?;
                let LocationLoad { process, place, .. } = self.loads[rank as usize];
                self.add_location(process, place, name);
            }
            Item::Communicator { members } => {
                let members: Vec<_> = members.iter().copied().map(LocationId).collect();
                builder.add_communicator(&members)?;
            }
            Item::Master { location } => self.master = location,
            Item::Sample {
                location,
                session,
                local: at,
                master: image,
            } => {
                let sessions = &mut self.sessions[location as usize];
                add_sample(sessions, session, SplineKnot { at, image });
            }
            Item::Region { .. } | Item::Metric { .. } | Item::Event { .. } => {}
        }
        Ok(())
    }

    fn add_location(&mut self, process: u32, place: Place, name: &str) {
        self.loads.push(LocationLoad {
            process,
            place,
            events: 0,
        });
        self.names.push(name.to_owned());
        self.sessions.push(vec![]);
    }

    /// Returns [`loads`](Self::loads) without the events, for as much of the file as is
    /// readable; does not verify it.
    pub fn loads_of(path: &Path) -> Vec<LocationLoad> {
        let mut file = Self::new(path);
        let mut builder = TraceBuilder::new(Matching::default());
        let Ok(mut reader) = TraceReader::open(path) else {
            return vec![];
        };
        while let Ok(Some(item)) = reader.next_item() {
            match item {
                Item::Event { location, .. } => file.loads[location as usize].events += 1,
                item if file.define(&item, &mut builder).is_err() => break,
                _ => {}
            }
        }
        file.loads
    }

    /// Writes the same trace to another file, with other times of events and other local
    /// times of samples. Everything else is unchanged, and identical to the byte.
    ///
    /// # Errors
    /// If the file cannot be written, or the original has changed or cannot be read
    /// again.
    pub fn write_corrected(
        &self,
        to: &Path,
        times: &[impl AsRef<[Timestamp<Global>]>],
        sessions: &Sessions,
    ) -> Result<(), FileError> {
        self.corrected_file(to, times, sessions)?.finish()
    }

    /// Writes such a file, which appears when it is finished.
    pub(super) fn corrected_file(
        &self,
        to: &Path,
        times: &[impl AsRef<[Timestamp<Global>]>],
        sessions: &Sessions,
    ) -> Result<NewFile, FileError> {
        let changed = || {
            FileError::content(
                &self.path,
                "it is no longer what it was when it was read first",
            )
        };
        let mut times: Vec<_> = times.iter().map(|times| times.as_ref().iter()).collect();
        let samples = sessions.iter().map(|sessions| sessions.iter().flatten());
        let mut samples: Vec<_> = samples.collect();
        // It was verified when it was read.
        let mut reader = TraceReader::open(&self.path)?.with_checksums(Checksums::Ignore);
        let mut writer = TraceWriter::create_line(to, reader.windows_end())?;
        while let Some((mut item, windows_end)) = reader.next_line()? {
            match &mut item {
                Item::Event { location, time, .. } => {
                    let times = times.get_mut(*location as usize);
                    *time = *times.and_then(Iterator::next).ok_or_else(changed)?;
                }
                Item::Sample {
                    location, local, ..
                } => {
                    let samples = samples.get_mut(*location as usize);
                    *local = samples.and_then(Iterator::next).ok_or_else(changed)?.at;
                }
                _ => {}
            }
            writer.write_line(&item, windows_end)?;
        }
        let is_over = times.iter_mut().all(|rest| rest.next().is_none())
            && samples.iter_mut().all(|rest| rest.next().is_none());
        match is_over {
            true => writer.end_lines(reader.windows_end()),
            false => Err(changed()),
        }
    }
}
