//! Search for the cycle of events that wait for each other, from location to location.

use std::sync::PoisonError;

use super::cycle::Cycle;
use super::forward::Shared;
use super::trace::Role;
use super::{EventId, LocationId, Trace};

/// Events of waiting locations, each followed by the location of the event that it waits for.
#[derive(Debug, Default)]
pub(super) struct CycleSearch {
    waits: Vec<[EventId; 2]>,
}

impl CycleSearch {
    /// Returns the cycle once `location` was reached before.
    pub(super) fn at(&self, location: u32) -> Option<Cycle> {
        let is_there = |[event, _]: &[EventId; 2]| event.location.0 == location;
        let start = self.waits.iter().position(is_there)?;
        let waits = self.waits[start..].to_vec();
        Some(Cycle { waits })
    }

    /// Adds an event and the one that it waits for, and returns the next location.
    pub(super) fn add(&mut self, event: EventId, other: EventId) -> u32 {
        self.waits.push([event, other]);
        other.location.0
    }
}

/// Finds the cycle, starting from a location that waits forever.
pub(super) fn find(shared: &Shared<'_>, stuck: u32) -> Cycle {
    let (mut search, mut at) = (CycleSearch::default(), stuck);
    loop {
        if let Some(cycle) = search.at(at) {
            return cycle;
        }
        match wait(shared, at) {
            Some(Wait {
                event,
                other: Some(other),
                ..
            }) => at = search.add(event, other),
            _ => return Cycle { waits: vec![] },
        }
    }
}

/// Event of a location that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) event: EventId,
    /// Event that it waits for; of a collective operation, the first missing one that is known here.
    pub(super) other: Option<EventId>,
    /// Collective operation whose exit waits.
    pub(super) instance: Option<u32>,
}

/// Returns the event for which a location waits.
pub(super) fn wait(shared: &Shared<'_>, at: u32) -> Option<Wait> {
    let trace = shared.forward.trace;
    let replay = shared.replays[at as usize]
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let mark = *replay.trace.marks.get(replay.mark)?;
    let is_exit = mark.role() == Role::Exit;
    let other = if is_exit {
        let missing = shared
            .gates
            .missing(mark.partner, mark.peer(), shared.stamps);
        missing.map(|(_, slot)| event_at(trace, slot.location, slot.enter))
    } else {
        Some(event_at(trace, mark.peer(), mark.partner))
    };
    Some(Wait {
        event: EventId {
            location: LocationId(at),
            event: mark.event,
        },
        other,
        instance: is_exit.then_some(mark.partner),
    })
}

/// Returns the event of a mark.
pub(super) fn event_at(trace: &Trace, location: u32, mark: u32) -> EventId {
    let event = trace.locations[location as usize].marks[mark as usize].event;
    EventId {
        location: LocationId(location),
        event,
    }
}
