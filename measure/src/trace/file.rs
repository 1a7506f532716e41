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
#[derive(Debug)]
pub struct TraceFile {
    /// Where it is.
    pub path: PathBuf,
    /// In which format.
    pub format: TraceFormat,
    /// What happened. Times are as in the file: those of the clocks of its locations.
    pub trace: Trace,
    /// What locations are called, in their order.
    pub names: Vec<String>,
    /// What their clocks showed when they were compared.
    pub sessions: Sessions,
    /// With whose; the number of a location.
    pub master: u32,
}

/// What is read, and what its numbers are in a builder.
#[derive(Debug)]
struct Loading {
    builder: TraceBuilder,
    locations: Vec<LocationId>,
    communicators: Vec<CommunicatorId>,
    names: Vec<String>,
    sessions: Sessions,
    master: u32,
}

impl TraceFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is no trace, or its events do not go together.
    pub fn read(path: &Path, matching: Matching) -> Result<Self, RecordError> {
        let mut reader = TraceReader::open(path)?;
        let mut loading = Loading {
            builder: TraceBuilder::new(matching),
            locations: vec![],
            communicators: vec![],
            names: vec![],
            sessions: vec![],
            master: 0,
        };
        while let Some(item) = reader.next_item()? {
            if let Err(why) = loading.take(&item) {
                return Err(reader.error(why));
            }
        }
        let Loading { builder, names, sessions, master, .. } = loading;
        let trace = builder.finish().map_err(|why| RecordError::content(path, why.to_string()))?;
        Ok(Self { path: path.to_owned(), format: reader.format(), trace, names, sessions, master })
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
        write_corrected(&self.path, path, format, times, sessions)
    }
}

/// Writes the trace of a file to another one, as [`TraceFile::write_corrected`] does.
///
/// # Errors
/// When that cannot be written, or this one cannot be read again as it was.
pub fn write_corrected(
    from: &Path,
    to: &Path,
    format: TraceFormat,
    times: &[impl AsRef<[Timestamp<Global>]>],
    sessions: &Sessions,
) -> Result<(), RecordError> {
    let changed = || RecordError::content(from, "it is no longer what it was when it was read first");
    let mut reader = TraceReader::open(from)?;
    let mut writer = TraceWriter::create_line(to, format, reader.windows_end())?;
    let mut times: Vec<_> = times.iter().map(|times| times.as_ref().iter()).collect();
    let mut samples: Vec<_> = sessions.iter().map(|sessions| sessions.iter().flatten()).collect();
    while let Some((mut item, windows_end)) = reader.next_line()? {
        match &mut item {
            Item::Event { location, time, .. } => {
                let times = times.get_mut(*location as usize);
                *time = *times.and_then(Iterator::next).ok_or_else(changed)?;
            }
            Item::Sample { location, local, .. } => {
                let samples = samples.get_mut(*location as usize);
                *local = samples.and_then(Iterator::next).ok_or_else(changed)?.at;
            }
            _ => {}
        }
        writer.write_line(&item, windows_end)?;
    }
    if times.iter_mut().any(|rest| rest.next().is_some()) || samples.iter_mut().any(|rest| rest.next().is_some()) {
        return Err(changed());
    }
    writer.finish_line(reader.windows_end())
}

impl Loading {
    fn take(&mut self, item: &Item<'_>) -> Result<(), String> {
        match *item {
            Item::Location { place, name } => {
                let id = self.builder.add_location(place);
                self.add(id.map_err(|why| why.to_string())?, name);
            }
            Item::Thread { rank, name } => {
                let id = self.builder.add_thread(self.locations[rank as usize]);
                self.add(id.map_err(|why| why.to_string())?, name);
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
                let location = self.locations[location as usize];
                self.builder.push(location, time, self.action(what)).map_err(|why| why.to_string())?;
            }
        }
        Ok(())
    }

    fn add(&mut self, id: LocationId, name: &str) {
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
