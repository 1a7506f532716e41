//! Definitions and events of a trace file on their way to a builder.

use downbeat_clock_core::spline::Knot;

use super::item::Item;
use super::sessions::{Sessions, add_sample};
use crate::ranks::Load;
use crate::{LocationId, Place, TraceBuilder, TraceError};

/// State of a file that is read item by item into a builder.
#[derive(Debug)]
pub(super) struct Loading<'a> {
    builder: &'a mut TraceBuilder,
    position: u64,
    pub(super) names: Vec<String>,
    pub(super) sessions: Sessions,
    pub(super) master: u32,
    pub(super) loads: Vec<Load>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(builder: &'a mut TraceBuilder) -> Self {
        Self {
            builder,
            position: 0,
            names: vec![],
            sessions: vec![],
            master: 0,
            loads: vec![],
        }
    }

    /// Takes the next item. A builder that is empty at first gives locations and
    /// communicators the numbers of the file.
    pub(super) fn take(&mut self, item: &Item<'_>) -> Result<(), String> {
        let name_of = |why: TraceError| why.to_string();
        match *item {
            Item::Location { place, name } => {
                self.builder.add_location(place).map_err(name_of)?;
                self.add(self.loads.len() as u32, place, name);
            }
            Item::Thread { rank, name } => {
                let Load { process, place, .. } = self.loads[rank as usize];
                self.builder.add_thread(LocationId(rank)).map_err(name_of)?;
                self.add(process, place, name);
            }
            Item::Communicator { members } => {
                let members: Vec<_> = members.iter().copied().map(LocationId).collect();
                self.builder.add_communicator(&members).map_err(name_of)?;
            }
            Item::Region { .. } | Item::Metric { .. } => {}
            Item::Master { location } => self.master = location,
            Item::Sample {
                location,
                session,
                local,
                master,
            } => {
                let (at, image) = (local, master);
                let sessions = &mut self.sessions[location as usize];
                add_sample(sessions, session, Knot { at, image });
            }
            Item::Event {
                location,
                time,
                event,
            } => {
                self.loads[location as usize].events += 1;
                let location = LocationId(location);
                let position = self.position;
                self.position += 1;
                if self.builder.owns(location) {
                    self.builder.set_position(position);
                    let taken = self.builder.push(location, time, event);
                    taken.map_err(name_of)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, process: u32, place: Place, name: &str) {
        self.loads.push(Load {
            process,
            place,
            events: 0,
        });
        self.names.push(name.to_owned());
        self.sessions.push(vec![]);
    }
}
