//! Search for the cycle of events that wait for each other across ranks.

use super::super::EventId;
use super::super::cycle::Cycle;
use super::super::cycle_search::{CycleSearch, event_at, wait};
use super::super::forward::Replay;
use super::TracePart;
use super::exchange::heard;
use super::words::{event_of, word_of};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Message to the other ranks about an event that a clock waits for: one of the constants below,
/// and two arguments.
type WaitWords = [u64; 3];

/// Nothing that can be identified.
const NOTHING: u64 = 0;

/// An event of the location, and the event that it waits for.
const EVENT: u64 = 1;

/// An event of the location, and the name of a collective operation, whose missing member may be on
/// any rank.
const OPERATION: u64 = 2;

/// Follows the cycle of waiting events from the first clock that waits forever; all ranks do it
/// together.
pub(super) async fn find<C: Comm>(
    part: &TracePart,
    replay: &Replay<'_>,
    comm: &C,
) -> Result<Cycle, CommError> {
    let stuck = replay.unfinished().next().map_or(u64::MAX, u64::from);
    let mut at = all_reduce(comm, stuck, u64::min).await? as u32;
    let mut search = CycleSearch::new(&part.trace);
    loop {
        if let Some(cycle) = search.at(at) {
            return Ok(cycle);
        }
        let mine = match part.is_own(at) {
            true => reason(part, replay, at),
            false => [NOTHING; 3],
        };
        let [kind, event, other] = all_reduce(comm, mine, heard).await?;
        let other = match kind {
            EVENT => Some(other),
            OPERATION => {
                let absent = absent(part, replay, other, event_of(event));
                let absent = absent.unwrap_or([u64::MAX; 2]);
                let [rank, event] = all_reduce(comm, absent, Ord::min).await?;
                (rank != u64::MAX).then_some(event)
            }
            _ => None,
        };
        match other {
            Some(other) => at = search.add(event_of(event), event_of(other)),
            None => return Ok(Cycle { waits: vec![] }),
        }
    }
}

/// Returns the reason why a clock of this rank waits.
fn reason(part: &TracePart, replay: &Replay<'_>, at: u32) -> WaitWords {
    let Some(found) = wait(replay, at) else {
        return [NOTHING; 3];
    };
    let event = word_of(found.event);
    let shared_here = |instance: &u32| part.is_shared(*instance) && !part.is_ordered(*instance);
    match (found.instance.filter(shared_here), found.other) {
        (Some(instance), _) => [OPERATION, event, part.names[instance as usize]],
        (None, Some(other)) => [EVENT, event, word_of(other)],
        (None, None) => [NOTHING; 3],
    }
}

/// Returns a member of this rank that has not entered and that an exit waits for: its rank in the
/// operation, and its enter.
fn absent(part: &TracePart, replay: &Replay<'_>, name: u64, exit: EventId) -> Option<[u64; 2]> {
    let instance = part.named(name)?;
    let member = (u32::MAX, exit.location.0);
    let (number, slot) = replay.gates.missing(instance, member, replay.stamps)?;
    let rank = part.team(instance).kept[number];
    let enter = event_at(&part.trace, slot.location, slot.enter);
    Some([rank.into(), word_of(enter)])
}
