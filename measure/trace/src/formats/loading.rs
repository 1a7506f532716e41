//! Definitions and events of a trace file on their way to a builder.

use downbeat_clock_core::spline::Knot;

use super::item::Item;
use super::numbers::FileNumbers;
use super::sessions::{Sessions, add_sample};
use super::target::TraceTarget;
use crate::distributed::Load;
use crate::{LocationId, Place};

/// State of a file that is read item by item into a target.
#[derive(Debug)]
pub(super) struct Loading<'a, T> {
    pub(super) target: &'a mut T,
    position: u64,
    pub(super) numbers: FileNumbers,
    pub(super) names: Vec<String>,
    pub(super) sessions: Sessions,
    pub(super) master: u32,
    pub(super) loads: Vec<Load>,
}

impl<'a, T: TraceTarget> Loading<'a, T> {
    pub(super) fn new(target: &'a mut T) -> Self {
        Self {
            target,
            position: 0,
            numbers: FileNumbers::default(),
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
                self.add(id, (self.loads.len() as u32, place), name);
            }
            Item::Thread { rank, name } => {
                let id = self.target.thread(self.numbers.locations[rank as usize]);
                self.add(
                    id.map_err(|why| why.to_string())?,
                    (
                        self.loads[rank as usize].process,
                        self.loads[rank as usize].place,
                    ),
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
            Item::Region { .. } | Item::Metric { .. } | Item::Value { .. } => {}
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
                what,
            } => {
                self.loads[location as usize].events += 1;
                let (location, action) = self
                    .numbers
                    .of(location, what)
                    .ok_or("it refers to a location or communicator that is not defined")?;
                let position = self.position;
                self.position += 1;
                if self.target.has(location) {
                    let taken = self.target.take(position, location, time, action);
                    taken.map_err(|why| why.to_string())?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, id: LocationId, (process, place): (u32, Place), name: &str) {
        self.loads.push(Load {
            process,
            place,
            events: 0,
        });
        self.numbers.locations.push(id);
        self.names.push(name.to_owned());
        self.sessions.push(vec![]);
    }
}
