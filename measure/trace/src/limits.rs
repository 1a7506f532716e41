//! Latest times of enters: the limits up to which backward amortization can move them
//! without making the exits that depend on them too early. Limits of sends are known when
//! their receives are replayed.

use super::extremes::Extremes;
use super::forward::Times;
use super::latencies::Latencies;
use super::read_ahead::OperationAhead;
use super::stamps::Stamps;
use super::trace::{Instance, NONE, Slot};
use super::{LocationId, Pattern, Trace};

/// Sets the limits of all enters; `times` are those after forward amortization.
pub(super) fn find_limits(
    trace: &Trace,
    times: &Times,
    latencies: &Latencies,
    stamps: &mut Stamps,
) {
    trace.store.in_turns(|| {
        let mut ahead = OperationAhead::new(trace);
        for instance in &trace.instances {
            ahead.read(instance, times);
            limit_enters(trace, times, latencies, stamps, instance);
        }
    });
}

/// Sets the limits of the enters of an operation.
pub(super) fn limit_enters(
    trace: &Trace,
    times: &Times,
    latencies: &Latencies,
    stamps: &mut Stamps,
    instance: &Instance,
) {
    // In reversed time, the first exit is the last, and messages go the other way.
    let mut exits = Extremes::NONE;
    let add = |slot: &Slot, exits: &mut Extremes| {
        if let Some(time) = exit_of(trace, times, slot) {
            exits.add(-time, trace.site(LocationId(slot.location)));
        }
    };
    let slots = trace.slots_of(instance);
    let in_order = instance.kind.pattern() == Pattern::ToLater;
    if !in_order {
        slots.iter().for_each(|slot| add(slot, &mut exits));
    }
    for slot in slots.iter().rev() {
        if slot.enter != NONE {
            limit_enter(trace, slot, &exits, latencies, stamps);
        }
        if in_order {
            add(slot, &mut exits);
        }
    }
}

/// Returns the exit time of a member, if the exit counts.
pub(super) fn exit_of(trace: &Trace, times: &Times, slot: &Slot) -> Option<i64> {
    let mark = trace.locations[slot.location as usize]
        .marks
        .get(slot.exit as usize)?;
    Some(times[slot.location as usize][mark.event as usize].as_nanos())
}

/// Sets the limit of a member's enter, which these exits wait for; in reversed time.
pub(super) fn limit_enter(
    trace: &Trace,
    slot: &Slot,
    exits: &Extremes,
    latencies: &Latencies,
    stamps: &mut Stamps,
) {
    let reach = exits.reach(trace.site(LocationId(slot.location)), latencies);
    stamps.set(slot.location, slot.enter, reach.saturating_neg());
}
