//! Encodings of a trace for viewers: Perfetto's own packets, and Chrome's JSON.

use super::json::JsonEvents;
use super::packets::{self, Counter, InternedName, TrackEvent};
use crate::formats::Quantity;

/// Encoding of tracks and events.
#[derive(Debug)]
pub(super) enum Encoder {
    Packets,
    Json(Box<JsonEvents>),
}

impl Encoder {
    /// Adds what comes before everything else.
    pub(super) fn begin(&mut self, to: &mut Vec<u8>) {
        match self {
            Self::Packets => packets::begin(to),
            Self::Json(json) => json.begin(to),
        }
    }

    /// Defines a name of events.
    pub(super) fn name(&mut self, to: &mut Vec<u8>, number: InternedName<'_>, name: &str) {
        match self {
            Self::Packets => packets::name(to, number, name),
            Self::Json(json) => json.name(number, name),
        }
    }

    /// Adds a process, given by its first location.
    pub(super) fn process(&mut self, to: &mut Vec<u8>, first: u32, name: &str) {
        match self {
            Self::Packets => packets::process(to, first, name),
            Self::Json(json) => json.process(to, first, name),
        }
    }

    /// Adds a location as a thread of a process; in that, it has the name `shown`.
    pub(super) fn thread(
        &mut self,
        to: &mut Vec<u8>,
        location: u32,
        first: u32,
        [name, shown]: [&str; 2],
    ) {
        match self {
            Self::Packets => packets::thread(to, location, first, [name, shown]),
            Self::Json(json) => json.thread(to, (location, first), [name, shown]),
        }
    }

    /// Adds an event.
    #[inline]
    pub(super) fn event(&mut self, to: &mut Vec<u8>, event: &TrackEvent<'_>) {
        match self {
            Self::Packets => packets::event(to, event),
            Self::Json(json) => json.event(to, event),
        }
    }

    /// Adds a counter, which belongs to a location.
    pub(super) fn counter(&mut self, to: &mut Vec<u8>, counter: Counter<'_>) {
        match self {
            Self::Packets => packets::counter(to, counter),
            // Its values define it.
            Self::Json(_) => {}
        }
    }

    /// Adds a value of a counter.
    pub(super) fn value(
        &mut self,
        to: &mut Vec<u8>,
        counter: Counter<'_>,
        time: u64,
        value: Quantity,
    ) {
        match self {
            Self::Packets => packets::value(to, counter, time, value),
            Self::Json(json) => json.value(to, counter, time, value),
        }
    }

    /// Adds what comes after everything else.
    pub(super) fn end(&mut self, to: &mut Vec<u8>) {
        match self {
            Self::Packets => {}
            Self::Json(json) => json.end(to),
        }
    }
}
