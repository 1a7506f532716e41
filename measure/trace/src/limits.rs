//! Latest times of sends and enters: the limits up to which backward amortization can move them
//! without making their receivers too early.

use std::ops::Range;
use std::sync::atomic::Ordering;

use downbeat_clock_core::Timestamp;

use super::extremes::Extremes;
use super::forward::Times;
use super::latencies::Latencies;
use super::stamps::Stamps;
use super::trace::{Instance, NONE, Role, Slot};
use super::workers::share;
use super::{LocationId, Pattern, Trace};

/// Replaces the stamps of sends and enters by their limits; `times` are those after forward
/// amortization.
pub(super) fn find(
    trace: &Trace,
    times: &Times,
    latencies: &Latencies,
    stamps: &Stamps,
    groups: &[Range<usize>],
) {
    let workers = groups.len();
    share(groups.to_vec(), |worker, group| {
        for location in group {
            of_sends(trace, times, latencies, stamps, location);
        }
        let of_worker = |part: usize| trace.instances.len() * part / workers;
        for instance in &trace.instances[of_worker(worker)..of_worker(worker + 1)] {
            of_enters(trace, times, latencies, stamps, instance);
        }
    });
}

/// Sets the limits of sends. Every message has one receive, which knows its send, so this reads in
/// order and writes at random.
pub(super) fn of_sends(
    trace: &Trace,
    times: &Times,
    latencies: &Latencies,
    stamps: &Stamps,
    location: usize,
) {
    let to = trace.site(LocationId(location as u32));
    let clock = trace.locations[location].clock;
    for mark in trace.locations[location]
        .marks
        .iter()
        .filter(|mark| mark.role() == Role::Receive)
    {
        let latency = latencies.between_sites(trace.site(LocationId(mark.peer())), to);
        // Events of one clock stay in their order, so no limit is needed.
        let limit = match trace.locations[mark.peer() as usize].clock == clock {
            true => Timestamp::from_nanos(i64::MAX),
            false => times[location][mark.event as usize] - latency,
        };
        stamps
            .of(mark.peer(), mark.partner)
            .store(limit.as_nanos(), Ordering::Relaxed);
    }
}

pub(super) fn of_enters(
    trace: &Trace,
    times: &Times,
    latencies: &Latencies,
    stamps: &Stamps,
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
            limit(trace, slot, &exits, latencies, stamps);
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
pub(super) fn limit(
    trace: &Trace,
    slot: &Slot,
    exits: &Extremes,
    latencies: &Latencies,
    stamps: &Stamps,
) {
    let reach = exits.reach(trace.site(LocationId(slot.location)), latencies);
    stamps
        .of(slot.location, slot.enter)
        .store(reach.saturating_neg(), Ordering::Relaxed);
}
