//! Items of a trace file: definitions, samples and events.

use crate::{Event, Place};
use downbeat_clock_core::{Global, Local, Timestamp};

/// One item of a trace file.
///
/// Locations, communicators and regions are counted from 0, each in the order of the file. A
/// definition comes before the items that refer to it. Events of a location are in order; those of
/// several locations may be mixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// Location: a process with one thread, or a thread that messages are addressed to.
    Location {
        /// Node and process.
        place: Place,
        /// Name of the location.
        name: &'a str,
    },
    /// Another thread of a process.
    Thread {
        /// Location that represents the process.
        rank: u32,
        /// Name of the thread.
        name: &'a str,
    },
    /// Communicator or team of threads.
    Communicator {
        /// Locations in the order of their ranks.
        members: &'a [u32],
    },
    /// Part of the program that events enter and leave.
    Region {
        /// Name of the region.
        name: &'a str,
    },
    /// Quantity that is measured along the events. Text traces have no metrics.
    Metric {
        /// Name of the metric.
        name: &'a str,
        /// Unit of its values; empty if there is none.
        unit: &'a str,
    },
    /// Location whose clock the others were compared with; location 0 if there is no such item.
    Master {
        /// Location of the master clock.
        location: u32,
    },
    /// Readings of the clock of a location and of the master's at one instant.
    Sample {
        /// Location of the clock.
        location: u32,
        /// Session of the location, counted from 0.
        session: u32,
        /// Time of the location's clock.
        local: Timestamp<Local>,
        /// Time of the master's clock.
        master: Timestamp<Global>,
    },
    /// Event.
    Event {
        /// Location of the event.
        location: u32,
        /// Time by the location's clock, or by the common clock after a correction.
        time: Timestamp<Global>,
        /// The event.
        event: Event<'a>,
    },
}
