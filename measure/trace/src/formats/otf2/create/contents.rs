//! Definitions of a trace that becomes an archive, and strings of its events.

use downbeat_otf2::{ClockOffset, StringRef};
use rustc_hash::FxHashMap;

use super::super::exact::ExactTrace;
use super::super::samples::{mean_time, offsets_of};
use crate::Place;
use crate::formats::sessions::add_sample;
use crate::formats::{Item, MergedItems, Sessions};
use crate::presync::ClockSample;

/// Location, and its files.
pub(super) struct NewLocation {
    pub(super) name: String,
    /// Index among the processes.
    pub(super) process: usize,
    pub(super) events: u64,
}

/// Process, which is a location group.
pub(super) struct NewProcess {
    pub(super) place: Place,
    /// Location that represents it.
    pub(super) rank: u32,
}

/// Everything but events.
#[derive(Default)]
pub(super) struct NewDefinitions {
    pub(super) locations: Vec<NewLocation>,
    pub(super) processes: Vec<NewProcess>,
    pub(super) regions: Vec<String>,
    pub(super) communicators: Vec<Vec<u32>>,
    /// Communicator of each window.
    pub(super) windows: Vec<u32>,
    /// Names and units.
    pub(super) metrics: Vec<[String; 2]>,
    /// Clock samples of each location, by session.
    pub(super) sessions: Sessions,
    pub(super) exact: ExactTrace,
}

/// Strings of events, each once.
#[derive(Debug, Default)]
pub(super) struct StringTable(pub(super) FxHashMap<String, u32>);

impl StringTable {
    pub(super) fn reference(&mut self, text: &str) -> StringRef {
        let next = self.0.len() as u32;
        // Most strings are not new.
        StringRef(match self.0.get(text) {
            Some(known) => *known,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        })
    }
}

impl NewDefinitions {
    pub(super) fn of(items: &MergedItems) -> Self {
        let mut found = Self {
            windows: items.windows().iter().copied().collect(),
            ..Self::default()
        };
        found.exact.is_unsized = items.is_mostly_unsized();
        for item in items.definitions() {
            match item {
                Item::Location { place, name } => {
                    let process = found.processes.len();
                    found.processes.push(NewProcess {
                        place,
                        rank: found.locations.len() as u32,
                    });
                    found.add_location(process, name);
                }
                Item::Thread { rank, name } => {
                    let process = found.locations[rank as usize].process;
                    found.add_location(process, name);
                }
                Item::Communicator { members } => found.communicators.push(members.to_vec()),
                Item::Region { name } => found.regions.push(name.to_owned()),
                Item::Metric { name, unit } => {
                    found.metrics.push([name, unit].map(str::to_owned));
                }
                Item::Sample {
                    location,
                    session,
                    local,
                    master,
                } => {
                    let (at, image) = (local, master);
                    let sessions = &mut found.sessions[location as usize];
                    add_sample(sessions, session, ClockSample { at, image });
                }
                Item::Master { location } => found.exact.master = Some(location),
                Item::Event { .. } => {}
            }
        }
        found
    }

    fn add_location(&mut self, process: usize, name: &str) {
        self.sessions.push(vec![]);
        self.locations.push(NewLocation {
            name: name.to_owned(),
            process,
            events: 0,
        });
    }

    /// Sets the shift of all times, of which the first and the last one are given, so
    /// that neither they nor those of sessions are negative. Returns the clock offsets of
    /// each location; `None` if there is no such shift.
    pub(super) fn shift_times(&mut self, [first, last]: [i64; 2]) -> Option<Vec<Vec<ClockOffset>>> {
        let sessions = self.sessions.iter().flatten();
        let first = sessions
            .map(|samples| mean_time(samples))
            .fold(first, i64::min);
        self.exact.shift = first.min(0).checked_neg()?;
        last.checked_add(self.exact.shift)?;
        let sessions = self.sessions.iter();
        sessions
            .map(|sessions| offsets_of(sessions, self.exact.shift))
            .collect()
    }
}
