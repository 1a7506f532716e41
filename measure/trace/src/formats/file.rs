//! Trace in a file: read as a whole, and written back with other times.

use std::path::{Path, PathBuf};

use crate::{
    Action, CommunicatorId, LocationId, Matching, PartBuilder, Place, Trace, TraceBuilder,
    TraceError,
};
use downbeat_clock_core::{Global, Knot, Timestamp};

use super::blocks::{self, InOrder, Layout};
use super::index::LocationLoad;
use super::item::{Item, What};
use super::numbers::Numbers;
use super::sessions::{Sessions, changed, samples_of};
use super::{TraceFormat, TraceReader, TraceWriter};
use crate::workers::share;
use downbeat_files::FileError;

/// Trace that was read from a file, with the data that a correction needs. Other contents, such as
/// regions, are only in the file.
///
/// For a file that ranks share, `T` can be a part of the trace.
#[derive(Debug)]
pub struct TraceFile<T = Trace> {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file.
    pub format: TraceFormat,
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
    pub loads: Vec<(u32, u64)>,
}

/// Error of a file that cannot be read, with its position.
#[derive(Debug)]
pub struct Unread<E = FileError> {
    /// Position of the error: greater if more was read before it.
    pub after: u64,
    /// Reason of the failure.
    pub why: Box<E>,
}

/// Receiver of the locations, communicators and events of a file.
pub(super) trait LoadTarget {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError>;
    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError>;
    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError>;

    /// Takes an event at a position of the file.
    fn event(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), String>;
}

impl LoadTarget for TraceBuilder {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }

    fn event(
        &mut self,
        _: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), String> {
        self.push(location, time, action)
            .map_err(|why| why.to_string())
    }
}

/// Ignores events of other ranks.
impl LoadTarget for PartBuilder {
    fn location(&mut self, place: Place) -> Result<LocationId, TraceError> {
        self.add_location(place)
    }

    fn thread(&mut self, rank: LocationId) -> Result<LocationId, TraceError> {
        self.add_thread(rank)
    }

    fn communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, TraceError> {
        self.add_communicator(members)
    }

    fn event(
        &mut self,
        position: u64,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
    ) -> Result<(), String> {
        if !self.owns(location) {
            return Ok(());
        }
        self.push(position, location, time, action)
            .map_err(|why| why.to_string())
    }
}

/// State of a file that is read item by item into a target.
#[derive(Debug)]
pub(super) struct Loading<'a, T> {
    pub(super) target: &'a mut T,
    position: u64,
    pub(super) numbers: Numbers,
    pub(super) names: Vec<String>,
    pub(super) sessions: Sessions,
    pub(super) master: u32,
    loads: Vec<(u32, u64)>,
}

impl TraceFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is not a valid trace, or its events do not match.
    pub fn read(path: &Path, matching: Matching) -> Result<Self, FileError> {
        Self::read_on(path, matching, 1)
    }

    /// Does the same as [`read`](Self::read) on this number of threads.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_on(path: &Path, matching: Matching, workers: usize) -> Result<Self, FileError> {
        let mut builder = TraceBuilder::new(matching);
        let file = match TraceFile::load_chunks(path, &mut builder, workers) {
            Ok(file) => file,
            Err(InOrder) => {
                builder = TraceBuilder::new(matching);
                TraceFile::load_counting(path, &mut builder, &mut 0)?
            }
        };
        let trace = builder
            .finish_on(workers)
            .map_err(|why| FileError::content(path, why.to_string()))?;
        Ok(file.with(trace))
    }

    /// Writes the same trace to another file, with other times of events and other local times of
    /// samples. Everything else is unchanged, and identical to the byte in the same format.
    ///
    /// # Errors
    /// If the file cannot be written, or the original has changed or cannot be read again.
    pub fn write_corrected(
        &self,
        path: &Path,
        format: TraceFormat,
        times: &[impl AsRef<[Timestamp<Global>]> + Sync],
        sessions: &Sessions,
    ) -> Result<(), FileError> {
        write_corrected([&self.path, path], format, times, sessions, 1)
    }
}

impl TraceFile<()> {
    /// Reads the events of a rank into `builder`, which the caller then finishes.
    ///
    /// # Errors
    /// If the file cannot be read, is not a valid trace, or its events cannot be added.
    pub fn load(path: &Path, builder: &mut PartBuilder) -> Result<Self, Unread> {
        if let Ok(file) = Self::load_own_chunks(path, builder) {
            return Ok(file);
        }
        builder.clear();
        let mut after = 0;
        Self::load_counting(path, builder, &mut after).map_err(|why| Unread {
            after,
            why: Box::new(why),
        })
    }

    /// Reads a file whose events are in chunks, on several threads.
    fn load_chunks(
        path: &Path,
        builder: &mut TraceBuilder,
        workers: usize,
    ) -> Result<Self, InOrder> {
        let mut loading = Loading::new(builder);
        let layout = Layout::read(path, |item| loading.take(item))?;
        let (file, numbers) = loading.end(path, TraceFormat::Binary, Some(&layout.loads));
        let mut loads = vec![];
        for (location, load) in (0..).zip(&layout.loads) {
            let location = numbers.location(location).ok_or(InOrder)?;
            builder.reserve(location, load.events as usize, load.marks as usize);
            loads.push(load.events);
        }
        let read = share(builder.split(workers, &loads), |_, mut part| {
            layout.read_events(path, &numbers, &file.loads, &mut part)
        });
        read.into_iter()
            .collect::<Result<(), InOrder>>()
            .map(|()| file)
    }

    /// Reads a rank's events of a file whose events are in chunks.
    fn load_own_chunks(path: &Path, builder: &mut PartBuilder) -> Result<Self, InOrder> {
        let mut loading = Loading::new(builder);
        let layout = Layout::read(path, |item| loading.take(item))?;
        let (file, numbers) = loading.end(path, TraceFormat::Binary, Some(&layout.loads));
        for (location, load) in (0..).zip(&layout.loads) {
            let location = numbers.location(location).ok_or(InOrder)?;
            builder.reserve(location, load.events as usize, load.marks as usize);
        }
        layout
            .read_events(path, &numbers, &file.loads, builder)
            .map(|()| file)
    }

    fn load_counting(
        path: &Path,
        target: &mut impl LoadTarget,
        after: &mut u64,
    ) -> Result<Self, FileError> {
        let mut reader = TraceReader::open(path)?;
        let mut loading = Loading::new(target);
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                return Err(reader.error(why));
            }
            *after += 1;
        }
        Ok(loading.end(path, reader.format(), None).0)
    }

    /// Returns [`TraceFile::loads`] without loading the trace, for as much of the file as is
    /// readable.
    pub fn loads_of(path: &Path) -> Vec<(u32, u64)> {
        let mut loads: Vec<(u32, u64)> = vec![];
        let layout = Layout::read(path, |item| {
            match *item {
                Item::Location { .. } => loads.push((loads.len() as u32, 0)),
                Item::Thread { rank, .. } => loads.push((loads[rank as usize].0, 0)),
                _ => {}
            }
            Ok(())
        });
        if let Ok(layout) = layout {
            loads
                .iter_mut()
                .zip(layout.loads)
                .for_each(|(load, found)| load.1 = found.events);
            return loads;
        }
        loads.clear();
        let Ok(mut reader) = TraceReader::open(path) else {
            return loads;
        };
        while let Ok(Some(item)) = reader.next_item() {
            match item {
                Item::Location { .. } => loads.push((loads.len() as u32, 0)),
                Item::Thread { rank, .. } => loads.push((loads[rank as usize].0, 0)),
                Item::Event { location, .. } => loads[location as usize].1 += 1,
                _ => {}
            }
        }
        loads
    }

    /// Returns the file with another `trace`.
    pub fn with<T>(self, trace: T) -> TraceFile<T> {
        let Self {
            path,
            format,
            trace: (),
            names,
            sessions,
            master,
            loads,
        } = self;
        TraceFile {
            path,
            format,
            trace,
            names,
            sessions,
            master,
            loads,
        }
    }
}

impl<T> TraceFile<T> {
    /// Does the same as [`write_corrected`](TraceFile::write_corrected); `time` returns the time of
    /// the next event of a location.
    ///
    /// # Errors
    /// As [`write_corrected`](TraceFile::write_corrected), and if `time` returns none.
    pub fn write_with(
        &self,
        path: &Path,
        format: TraceFormat,
        mut time: impl FnMut(u32) -> Option<Timestamp<Global>>,
        sessions: &Sessions,
    ) -> Result<(), FileError> {
        let mut written = 0;
        let (writer, windows_end) =
            copy([&self.path, path], format, sessions, |location, _, _| {
                written += 1;
                time(location).ok_or_else(|| changed(&self.path))
            })?;
        if written != self.loads.iter().map(|(_, events)| events).sum::<u64>() {
            return Err(changed(&self.path));
        }
        writer.finish_line(windows_end)
    }
}

/// Writes the trace of a file to another one, as [`TraceFile::write_corrected`] does, on this
/// number of threads.
///
/// # Errors
/// If it cannot be written, or the original has changed or cannot be read again.
pub fn write_corrected(
    [from, to]: [&Path; 2],
    format: TraceFormat,
    times: &[impl AsRef<[Timestamp<Global>]> + Sync],
    sessions: &Sessions,
    workers: usize,
) -> Result<(), FileError> {
    if format == TraceFormat::Binary
        && let Ok(copied) = blocks::copy([from, to], times, sessions, workers)
    {
        return copied;
    }
    let mut times: Vec<_> = times.iter().map(|times| times.as_ref().iter()).collect();
    let (writer, windows_end) = copy([from, to], format, sessions, |location, _, _| {
        let times = times.get_mut(location as usize);
        times
            .and_then(Iterator::next)
            .copied()
            .ok_or_else(|| changed(from))
    })?;
    if times.iter_mut().any(|rest| rest.next().is_some()) {
        return Err(changed(from));
    }
    writer.finish_line(windows_end)
}

/// Copies a trace, except for local times of samples and times of events: `time` returns the new
/// time of an event, given its location, its old time and its contents. The caller finishes the
/// returned writer, with the returned line end.
pub(super) fn copy(
    [from, to]: [&Path; 2],
    format: TraceFormat,
    sessions: &Sessions,
    mut time: impl FnMut(u32, Timestamp<Global>, What<'_>) -> Result<Timestamp<Global>, FileError>,
) -> Result<(TraceWriter, bool), FileError> {
    let mut reader = TraceReader::open(from)?;
    let mut writer = TraceWriter::create_line(to, format, reader.windows_end())?;
    let mut samples = samples_of(sessions);
    while let Some((mut item, windows_end)) = reader.next_line()? {
        match &mut item {
            Item::Event {
                location,
                time: at,
                what,
            } => *at = time(*location, *at, *what)?,
            Item::Sample {
                location, local, ..
            } => {
                let samples = samples.get_mut(*location as usize);
                *local = samples
                    .and_then(Iterator::next)
                    .ok_or_else(|| changed(from))?
                    .at;
            }
            _ => {}
        }
        writer.write_line(&item, windows_end)?;
    }
    match samples.iter_mut().any(|rest| rest.next().is_some()) {
        true => Err(changed(from)),
        false => Ok((writer, reader.windows_end())),
    }
}

impl<'a, T: LoadTarget> Loading<'a, T> {
    pub(super) fn new(target: &'a mut T) -> Self {
        Self {
            target,
            position: 0,
            numbers: Numbers::default(),
            names: vec![],
            sessions: vec![],
            master: 0,
            loads: vec![],
        }
    }

    pub(super) fn take(&mut self, item: &Item<'_>) -> Result<(), String> {
        match *item {
            Item::Location { place, name } => {
                let id = self.target.location(place).map_err(|why| why.to_string())?;
                self.add(id, self.loads.len() as u32, name);
            }
            Item::Thread { rank, name } => {
                let id = self.target.thread(self.numbers.locations[rank as usize]);
                self.add(
                    id.map_err(|why| why.to_string())?,
                    self.loads[rank as usize].0,
                    name,
                );
            }
            Item::Communicator { members } => {
                let members: Vec<_> = members
                    .iter()
                    .map(|member| self.numbers.locations[*member as usize])
                    .collect();
                let id = self
                    .target
                    .communicator(&members)
                    .map_err(|why| why.to_string())?;
                self.numbers.communicators.push(id);
            }
            Item::Region { .. } => {}
            Item::Master { location } => self.master = location,
            Item::Sample {
                location,
                session,
                local,
                master,
            } => {
                let sessions = &mut self.sessions[location as usize];
                if sessions.len() <= session as usize {
                    sessions.push(vec![]);
                }
                sessions[session as usize].push(Knot {
                    at: local,
                    image: master,
                });
            }
            Item::Event {
                location,
                time,
                what,
            } => {
                self.loads[location as usize].1 += 1;
                let (location, action) = self
                    .numbers
                    .of(location, what)
                    .ok_or("it names what there is not")?;
                let position = self.position;
                self.position += 1;
                self.target.event(position, location, time, action)?;
            }
        }
        Ok(())
    }

    /// Returns the file, and the ids of its numbers in the target; numbers of events are known from
    /// the index, or were counted.
    fn end(
        self,
        path: &Path,
        format: TraceFormat,
        counted: Option<&[LocationLoad]>,
    ) -> (TraceFile<()>, Numbers) {
        let Self {
            names,
            sessions,
            master,
            mut loads,
            numbers,
            ..
        } = self;
        for (load, counted) in loads.iter_mut().zip(counted.unwrap_or_default()) {
            load.1 = counted.events;
        }
        let path = path.to_owned();
        (
            TraceFile {
                path,
                format,
                trace: (),
                names,
                sessions,
                master,
                loads,
            },
            numbers,
        )
    }

    fn add(&mut self, id: LocationId, process: u32, name: &str) {
        self.loads.push((process, 0));
        self.numbers.locations.push(id);
        self.names.push(name.to_owned());
        self.sessions.push(vec![]);
    }
}
