//! A trace in a file: read as a whole, and written back with other times.

use std::path::{Path, PathBuf};

use downbeat_clock_core::{Global, Knot, Local, Timestamp};
use downbeat_sync::postmortem::{Action, CommunicatorId, LocationId, Matching, Trace, TraceBuilder};

use super::item::{Item, What};
use super::{TraceFormat, TraceReader, TraceWriter};
use crate::records::RecordError;

/// What clocks showed when they were compared with the master's: of every location, its sessions, each with its
/// samples.
pub type Sessions = Vec<Vec<Vec<Knot<Local, Global>>>>;

/// A trace that was read from a file, with what a correction needs. What only the file has, such as regions, stays
/// there.
///
/// What is in the file that ranks share may be a part of a trace.
#[derive(Debug)]
pub struct TraceFile<T = Trace> {
    /// Where it is.
    pub path: PathBuf,
    /// In which format.
    pub format: TraceFormat,
    /// What happened. Times are as in the file: those of the clocks of its locations.
    pub trace: T,
    /// What locations are called, in their order.
    pub names: Vec<String>,
    /// What their clocks showed when they were compared.
    pub sessions: Sessions,
    /// With whose; the number of a location.
    pub master: u32,
    /// Of every location, the number of the one that stands for its process, mostly its own, and how many events it has.
    pub loads: Vec<(u32, u64)>,
}

/// Where a file cannot be read.
#[derive(Debug)]
pub struct Unread {
    /// How many things it says before.
    pub after: u64,
    /// Why.
    pub why: Box<RecordError>,
}

/// What is read, and what its numbers are in a builder.
#[derive(Debug)]
struct Loading<'a> {
    builder: &'a mut TraceBuilder,
    locations: Vec<LocationId>,
    communicators: Vec<CommunicatorId>,
    names: Vec<String>,
    sessions: Sessions,
    master: u32,
    loads: Vec<(u32, u64)>,
}

impl TraceFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is no trace, or its events do not go together.
    pub fn read(path: &Path, matching: Matching) -> Result<Self, RecordError> {
        let mut builder = TraceBuilder::new(matching);
        let file = TraceFile::load(path, &mut builder).map_err(|unread| *unread.why)?;
        let trace = builder.finish().map_err(|why| RecordError::content(path, why.to_string()))?;
        Ok(file.with(trace))
    }

    /// Writes the same trace to another file, with other times of events and other local times of samples; all else is
    /// as it was, and in the same format to the byte.
    ///
    /// # Errors
    /// When the file cannot be written, or this one cannot be read again as it was.
    pub fn write_corrected(
        &self,
        path: &Path,
        format: TraceFormat,
        times: &[impl AsRef<[Timestamp<Global>]>],
        sessions: &Sessions,
    ) -> Result<(), RecordError> {
        let counts = times.iter().map(|times| times.as_ref().len() as u64);
        if !counts.eq(self.loads.iter().map(|(_, events)| *events)) {
            return Err(self.changed());
        }
        let mut times: Vec<_> = times.iter().map(|times| times.as_ref().iter()).collect();
        self.write_with(path, format, |location| times.get_mut(location as usize)?.next().copied(), sessions)
    }
}

impl TraceFile<()> {
    /// Reads a file into a builder, which is to be finished when all went well.
    ///
    /// # Errors
    /// When it cannot be read, is no trace, or its events cannot be added.
    pub fn load(path: &Path, builder: &mut TraceBuilder) -> Result<Self, Unread> {
        let mut after = 0;
        Self::load_counting(path, builder, &mut after).map_err(|why| Unread { after, why: Box::new(why) })
    }

    fn load_counting(path: &Path, builder: &mut TraceBuilder, after: &mut u64) -> Result<Self, RecordError> {
        let mut reader = TraceReader::open(path)?;
        let mut loading = Loading {
            builder,
            locations: vec![],
            communicators: vec![],
            names: vec![],
            sessions: vec![],
            master: 0,
            loads: vec![],
        };
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                return Err(reader.error(why));
            }
            *after += 1;
        }
        let Loading { names, sessions, master, loads, .. } = loading;
        Ok(Self { path: path.to_owned(), format: reader.format(), trace: (), names, sessions, master, loads })
    }

    /// As [`TraceFile::loads`], of as much of a file as can be read, before it is.
    pub fn loads_of(path: &Path) -> Vec<(u32, u64)> {
        let mut loads: Vec<(u32, u64)> = vec![];
        let Ok(mut reader) = TraceReader::open(path) else { return loads };
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

    /// The file, with what was made of it.
    pub fn with<T>(self, trace: T) -> TraceFile<T> {
        let Self { path, format, trace: (), names, sessions, master, loads } = self;
        TraceFile { path, format, trace, names, sessions, master, loads }
    }
}

impl<T> TraceFile<T> {
    /// As [`write_corrected`](TraceFile::write_corrected), where `time` says when the next event of a location is.
    ///
    /// # Errors
    /// As there; also where `time` does not know.
    pub fn write_with(
        &self,
        path: &Path,
        format: TraceFormat,
        mut time: impl FnMut(u32) -> Option<Timestamp<Global>>,
        sessions: &Sessions,
    ) -> Result<(), RecordError> {
        let mut written = 0;
        let changed = || self.changed();
        let mut reader = TraceReader::open(&self.path)?;
        let mut writer = TraceWriter::create_line(path, format, reader.windows_end())?;
        let mut samples: Vec<_> = sessions.iter().map(|sessions| sessions.iter().flatten()).collect();
        while let Some((mut item, windows_end)) = reader.next_line()? {
            match &mut item {
                Item::Event { location, time: shown, .. } => {
                    *shown = time(*location).ok_or_else(changed)?;
                    written += 1;
                }
                Item::Sample { location, local, .. } => {
                    let samples = samples.get_mut(*location as usize);
                    *local = samples.and_then(Iterator::next).ok_or_else(changed)?.at;
                }
                _ => {}
            }
            writer.write_line(&item, windows_end)?;
        }
        let events = self.loads.iter().map(|(_, events)| events).sum::<u64>();
        if written != events || samples.iter_mut().any(|rest| rest.next().is_some()) {
            return Err(changed());
        }
        writer.finish_line(reader.windows_end())
    }

    fn changed(&self) -> RecordError {
        RecordError::content(&self.path, "it is no longer what it was when it was read first")
    }
}

impl Loading<'_> {
    fn take(&mut self, item: &Item<'_>) -> Result<(), String> {
        match *item {
            Item::Location { place, name } => {
                let id = self.builder.add_location(place).map_err(|why| why.to_string())?;
                self.add(id, self.loads.len() as u32, name);
            }
            Item::Thread { rank, name } => {
                let id = self.builder.add_thread(self.locations[rank as usize]);
                self.add(id.map_err(|why| why.to_string())?, self.loads[rank as usize].0, name);
            }
            Item::Communicator { members } => {
                let members: Vec<_> = members.iter().map(|member| self.locations[*member as usize]).collect();
                self.communicators.push(self.builder.add_communicator(&members).map_err(|why| why.to_string())?);
            }
            Item::Region { .. } => {}
            Item::Master { location } => self.master = location,
            Item::Sample { location, session, local, master } => {
                let sessions = &mut self.sessions[location as usize];
                if sessions.len() <= session as usize {
                    sessions.push(vec![]);
                }
                sessions[session as usize].push(Knot { at: local, image: master });
            }
            Item::Event { location, time, what } => {
                self.loads[location as usize].1 += 1;
                let location = self.locations[location as usize];
                self.builder.push(location, time, self.action(what)).map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    }

    fn add(&mut self, id: LocationId, process: u32, name: &str) {
        self.loads.push((process, 0));
        self.locations.push(id);
        self.names.push(name.to_owned());
        self.sessions.push(vec![]);
    }

    fn action(&self, what: What<'_>) -> Action {
        let location = |number: u32| self.locations[number as usize];
        let communicator = |number: u32| self.communicators[number as usize];
        match what {
            What::Enter { .. } | What::Leave { .. } | What::Note(_) => Action::Internal,
            What::Send { to, communicator: within, tag } => {
                Action::Send { to: location(to), communicator: communicator(within), tag }
            }
            What::Receive { from, communicator: within, tag } => {
                Action::Receive { from: location(from), communicator: communicator(within), tag }
            }
            What::Collective { communicator: within } => Action::Enter { communicator: communicator(within) },
            What::CollectiveEnd { communicator: within, kind, root, sent, received } => {
                Action::Exit { communicator: communicator(within), kind, root, sent, received }
            }
            What::Fork { team } => Action::Fork { team: communicator(team) },
            What::ThreadBegin { team } => Action::Begin { team: communicator(team) },
            What::ThreadEnd { team } => Action::End { team: communicator(team) },
            What::Join { team } => Action::Join { team: communicator(team) },
        }
    }
}
