//! Search for the cycle of events that wait for each other across ranks.

use std::sync::PoisonError;

use super::super::cycle::Cycle;
use super::super::forward::Shared;
use super::super::trace::Role;
use super::super::{EventId, LocationId};
use super::TracePart;
use super::exchange::heard;
use super::part::{event_of, word_of};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Message to the other ranks about an event that a location waits for: one of the constants below,
/// and two arguments.
type Wait = [u64; 3];

/// Nothing that can be identified.
const NOTHING: u64 = 0;

/// An event of the location, and the event that it waits for.
const EVENT: u64 = 1;

/// An event of the location, and the name of a collective operation, whose missing member may be on
/// any rank.
const OPERATION: u64 = 2;

/// Follows the cycle of waiting events from the first location that waits forever; all ranks do it
/// together.
pub(super) async fn find<C: Comm>(
    part: &TracePart,
    shared: &Shared<'_>,
    comm: &C,
) -> Result<Cycle, CommError> {
    let stuck = shared.unfinished().next().map_or(u64::MAX, u64::from);
    let mut at = all_reduce(comm, stuck, u64::min).await? as u32;
    let mut seen: Vec<(u32, [EventId; 2])> = vec![];
    loop {
        if let Some(start) = seen.iter().position(|(location, _)| *location == at) {
            return Ok(Cycle {
                waits: seen[start..].iter().map(|(_, wait)| *wait).collect(),
            });
        }
        let mine = if part.is_own(at) {
            wait(part, shared, at)
        } else {
            [0; 3]
        };
        let [kind, event, other] = all_reduce(comm, mine, heard).await?;
        let other = match kind {
            EVENT => Some(other),
            OPERATION => {
                let absent = absent(part, shared, other).unwrap_or([u64::MAX; 2]);
                let [rank, event] = all_reduce(comm, absent, Ord::min).await?;
                (rank != u64::MAX).then_some(event)
            }
            _ => None,
        };
        let Some(other) = other.map(event_of) else {
            return Ok(Cycle { waits: vec![] });
        };
        seen.push((at, [event_of(event), other]));
        at = other.location.0;
    }
}

/// Returns the reason why a location of this rank waits.
fn wait(part: &TracePart, shared: &Shared<'_>, at: u32) -> Wait {
    let replay = shared.replays[at as usize]
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let Some(mark) = replay.trace.marks.get(replay.mark) else {
        return [NOTHING; 3];
    };
    let event = word_of(EventId {
        location: LocationId(at),
        event: mark.event,
    });
    if mark.role() == Role::Exit && part.is_shared(mark.partner) && !part.is_ordered(mark.partner) {
        return [OPERATION, event, part.names[mark.partner as usize]];
    }
    let other = match mark.role() {
        Role::Exit => shared
            .gates
            .missing(mark.partner, mark.peer(), shared.stamps)
            .map(|(_, slot)| (slot.location, slot.enter)),
        _ => Some((mark.peer(), mark.partner)),
    };
    other.map_or([NOTHING; 3], |(location, mark)| {
        [EVENT, event, word_of(event_at(part, location, mark))]
    })
}

/// Returns a member of this rank that has not entered: its rank in the operation, and its enter.
fn absent(part: &TracePart, shared: &Shared<'_>, name: u64) -> Option<[u64; 2]> {
    let instance = part.named(name)?;
    let (number, slot) = shared.gates.missing(instance, u32::MAX, shared.stamps)?;
    let rank = part.team(instance).kept[number];
    Some([
        rank.into(),
        word_of(event_at(part, slot.location, slot.enter)),
    ])
}

fn event_at(part: &TracePart, location: u32, mark: u32) -> EventId {
    let event = part.trace.locations[location as usize].marks[mark as usize].event;
    EventId {
        location: LocationId(location),
        event,
    }
}
