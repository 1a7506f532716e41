//! Search for the cycle of events that wait for each other, from clock to clock.

use super::cycle::Cycle;
use super::forward::Replay;
use super::trace::Role;
use super::{EventId, LocationId, Trace};

/// Events of waiting clocks, each followed by an event of another clock that it waits for.
#[derive(Debug)]
pub(super) struct CycleSearch<'a> {
    trace: &'a Trace,
    waits: Vec<[EventId; 2]>,
}

impl<'a> CycleSearch<'a> {
    pub(super) const fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            waits: vec![],
        }
    }

    fn clock_of(&self, event: EventId) -> u32 {
        self.trace.locations[event.location.index()].clock
    }

    /// Returns the cycle once `clock` was reached before.
    pub(super) fn at(&self, clock: u32) -> Option<Cycle> {
        let is_there = |[event, _]: &[EventId; 2]| self.clock_of(*event) == clock;
        let start = self.waits.iter().position(is_there)?;
        let waits = self.waits[start..].to_vec();
        Some(Cycle { waits })
    }

    /// Adds an event and the one that it waits for, and returns the next clock.
    pub(super) fn add(&mut self, event: EventId, other: EventId) -> u32 {
        self.waits.push([event, other]);
        self.clock_of(other)
    }
}

/// Finds the cycle, starting from a clock that waits forever.
pub(super) fn find_cycle(replay: &Replay<'_>, stuck: u32) -> Cycle {
    let mut search = CycleSearch::new(replay.forward.trace);
    let mut at = stuck;
    loop {
        if let Some(cycle) = search.at(at) {
            return cycle;
        }
        match find_wait(replay, at) {
            Some([event, other]) => at = search.add(event, other),
            None => return Cycle { waits: vec![] },
        }
    }
}

/// Returns the event that a clock waits with, and the one that it waits for: of a
/// collective operation, the first missing one.
pub(super) fn find_wait(replay: &Replay<'_>, at: u32) -> Option<[EventId; 2]> {
    let trace = replay.forward.trace;
    let part = replay.next_part(at)?;
    let (location, mark) = (part.location, *part.trace.marks.get(part.mark)?);
    let other = if mark.role() == Role::Exit {
        let member = (mark.peer(), location);
        let missing = replay.gates.missing(mark.partner, member, replay.stamps)?;
        event_at(trace, missing.location, missing.enter)
    } else {
        event_at(trace, mark.peer(), mark.partner)
    };
    Some([event_at(trace, location, part.mark as u32), other])
}

/// Returns the event of a mark.
fn event_at(trace: &Trace, location: u32, mark: u32) -> EventId {
    let event = trace.locations[location as usize].marks[mark as usize].event;
    trace.event_of_ghost(EventId {
        location: LocationId(location),
        event,
    })
}
