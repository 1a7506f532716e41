//! Members of collective operations, with the times of their events.

use downbeat_clock_core::{Global, Timestamp};

use super::latencies::Site;
use super::read_ahead::OperationAhead;
use super::trace::{Instance, Slot};
use super::{EventId, LocationId, Trace};

/// Member of a collective operation, with its events and their times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberTimes {
    pub(crate) site: Site,
    pub(crate) enter: Option<(EventId, i64)>,
    pub(crate) exit: Option<(EventId, i64)>,
}

impl MemberTimes {
    fn new(slot: &Slot, trace: &Trace, times: &[&[Timestamp<Global>]]) -> Self {
        let location = LocationId(slot.location);
        let marks = &trace.locations[location.index()].marks;
        let at = |mark: u32| {
            let event = marks.get(mark as usize)?.event;
            let time = times[location.index()][event as usize];
            let id = trace.event_of_ghost(EventId { location, event });
            Some((id, time.as_nanos()))
        };
        Self {
            site: trace.site(location),
            enter: at(slot.enter),
            exit: at(slot.exit),
        }
    }
}

impl Trace {
    /// Hands over the operations with these numbers, each with its members in the order
    /// of their ranks, by these times.
    pub(crate) fn each_operation(
        &self,
        times: &[&[Timestamp<Global>]],
        numbers: impl Iterator<Item = usize>,
        mut see: impl FnMut(&Instance, &[MemberTimes]),
    ) {
        let (mut ahead, mut members) = (OperationAhead::new(self), vec![]);
        for instance in numbers.map(|number| &self.instances[number]) {
            ahead.read(instance, times);
            members.clear();
            let slots = self.slots_of(instance).iter();
            members.extend(slots.map(|slot| MemberTimes::new(slot, self, times)));
            see(instance, &members);
        }
    }
}
