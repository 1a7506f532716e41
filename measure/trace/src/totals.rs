//! Numbers of events, messages and collective operations.

use super::encoding::merged;
use super::trace::{NONE, Role};
use super::{Trace, UnmatchedEvents};

/// Numbers of events, messages and collective operations of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Totals {
    /// Number of events.
    pub events: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of collective operations.
    pub collectives: u64,
    /// Number of receives, and of exits of collective operations that wait for other members.
    pub arrivals: u64,
    /// Numbers of incomplete messages and operations.
    pub left_out: UnmatchedEvents,
}

impl Trace {
    /// Counts the contents of the trace.
    pub fn totals(&self) -> Totals {
        self.totals_of(|_| true)
    }

    /// Counts the contents, and of collective operations those that are selected.
    pub(super) fn totals_of(&self, is_counted: impl Fn(u32) -> bool) -> Totals {
        let own = self.locations.iter().filter(|of| !of.times.is_empty());
        let marks = own.flat_map(|of| &of.marks);
        let messages = marks.filter(|mark| mark.role() == Role::Receive).count() as u64;
        let instances = (0..).zip(&self.instances);
        let (mut collectives, mut exits) = (0, 0);
        for (_, instance) in instances.filter(|(number, _)| is_counted(*number)) {
            let slots = self.slots_of(instance).iter();
            exits += slots.filter(|slot| slot.exit != NONE).count() as u64;
            collectives += 1;
        }
        Totals {
            events: self.events(),
            messages,
            collectives,
            arrivals: messages + exits,
            left_out: self.left_out(),
        }
    }
}

merged! {
    Totals { events, messages, collectives, arrivals, left_out }
    UnmatchedEvents { sends, receives, collectives }
}
