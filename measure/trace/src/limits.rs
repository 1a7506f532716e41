//! Latest times of enters: the limits up to which backward amortization can move them
//! without making the exits that depend on them too early. Limits of sends are known when
//! their receives are replayed.

use downbeat_clock_core::{Global, Timestamp};

use super::extremes::Extremes;
use super::latencies::Latencies;
use super::read_ahead::OperationAhead;
use super::stamps::Stamps;
use super::trace::{Instance, NONE, Slot};
use super::{LocationId, Pattern, Trace};

/// Sets the limits of all enters; `times` are those after forward amortization.
pub(super) fn find_limits<T: AsRef<[Timestamp<Global>]>>(
    trace: &Trace,
    times: &[T],
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
fn limit_enters<T: AsRef<[Timestamp<Global>]>>(
    trace: &Trace,
    times: &[T],
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
            let reach = exits.reach(trace.site(LocationId(slot.location)), latencies);
            stamps.set(slot.location, slot.enter, reach.saturating_neg());
        }
        if in_order {
            add(slot, &mut exits);
        }
    }
}

/// Returns the exit time of a member, if the exit counts.
fn exit_of<T: AsRef<[Timestamp<Global>]>>(trace: &Trace, times: &[T], slot: &Slot) -> Option<i64> {
    let mark = trace.locations[slot.location as usize]
        .marks
        .get(slot.exit as usize)?;
    let times = times[slot.location as usize].as_ref();
    Some(times[mark.event as usize].as_nanos())
}
