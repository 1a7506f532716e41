//! Latest times of enters: the limits up to which backward amortization can move them
//! without making the exits that depend on them too early. Limits of sends are known when
//! their receives are replayed.

use downbeat_clock_core::{Global, Timestamp};

use super::extremes::Extremes;
use super::latencies::Latencies;
use super::member_times::MemberTimes;
use super::stamps::Stamps;
use super::trace::{Instance, NONE};
use super::{DependencePattern, Trace};

/// Sets the limits of all enters; `times` are those after forward amortization.
pub(super) fn find_limits(
    trace: &Trace,
    times: &[&[Timestamp<Global>]],
    latencies: &Latencies,
    stamps: &mut Stamps,
) {
    let all = 0..trace.instances.len();
    trace.store.in_turns(|| {
        trace.each_operation(times, all, |instance, members| {
            limit_enters(trace, latencies, stamps, instance, members);
        });
    });
}

/// Sets the limits of the enters of an operation.
fn limit_enters(
    trace: &Trace,
    latencies: &Latencies,
    stamps: &mut Stamps,
    instance: &Instance,
    members: &[MemberTimes],
) {
    // In reversed time, the first exit is the last, and messages go the other way.
    let mut exits = Extremes::NONE;
    let add = |member: &MemberTimes, exits: &mut Extremes| {
        if let Some((_, time)) = member.exit {
            exits.add(-time, member.site);
        }
    };
    let in_order = instance.kind.pattern() == DependencePattern::ToLater;
    if !in_order {
        members.iter().for_each(|member| add(member, &mut exits));
    }
    for (slot, member) in trace.slots_of(instance).iter().zip(members).rev() {
        if slot.enter != NONE {
            let reach = exits.reach(member.site, latencies);
            stamps.set(slot.location, slot.enter, reach.saturating_neg());
        }
        if in_order {
            add(member, &mut exits);
        }
    }
}
