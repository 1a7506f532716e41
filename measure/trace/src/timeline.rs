//! Order of all events of each clock.

use super::{EventId, LocationId};

/// Consecutive events of a clock that are on one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Index of the location among those of the clock.
    pub(super) part: u32,
    /// First event of the location after the run.
    pub(super) end: u32,
}

/// Order of all events of a clock: by time, those of one location in their order. Events of several
/// locations at one time are in the order in which they were added, except that those that depend
/// on others come after them.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// Locations of the clock.
    pub(super) locations: Vec<u32>,
    pub(super) runs: Vec<Run>,
}

/// Timelines of all clocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Timelines {
    /// For every location, the timeline of its clock if it is the first one of it, or else an empty
    /// one.
    pub(super) all: Vec<Timeline>,
    /// For every location, its index among those of its clock.
    pub(super) parts: Vec<u32>,
}

impl Timeline {
    /// Hands over the events in their order, each with the index of its location among
    /// those of the clock.
    pub(super) fn events(&self) -> impl Iterator<Item = (usize, EventId)> + '_ {
        let mut next = vec![0; self.locations.len()];
        self.runs.iter().flat_map(move |run| {
            let part = run.part as usize;
            let location = LocationId(self.locations[part]);
            let start = std::mem::replace(&mut next[part], run.end);
            (start..run.end).map(move |event| (part, EventId { location, event }))
        })
    }
}

impl Timelines {
    /// Returns the timeline of a clock, given by its first location.
    pub(super) fn of(&self, clock: u32) -> &Timeline {
        &self.all[clock as usize]
    }

    /// Returns the index of a location among those of its clock.
    pub(super) fn part(&self, location: u32) -> u32 {
        self.parts[location as usize]
    }
}
