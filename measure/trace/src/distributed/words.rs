//! Encoding of events and extremes as integers.

use super::super::extremes::Extremes;
use super::super::latencies::Site;
use super::super::{EventId, LocationId, Trace};

/// Encodes an event as an integer.
pub(super) fn word_of(event: EventId) -> u64 {
    u64::from(event.location.0) << 32 | u64::from(event.event)
}

/// Decodes an event.
pub(super) fn event_of(word: u64) -> EventId {
    EventId {
        location: LocationId((word >> 32) as u32),
        event: word as u32,
    }
}

pub(super) fn words_of(seen: &Extremes) -> [u64; 5] {
    let at = seen.at.map_or(u64::MAX, |site| site.clock.into());
    let [process, node, beyond] = seen.outside.map(|time| time as u64);
    [seen.latest as u64, at, process, node, beyond]
}

pub(super) fn extremes_of(trace: &Trace, [latest, at, beside @ ..]: &[u64; 5]) -> Extremes {
    // A clock is given by its first location.
    let site = |clock: u32| -> Site { trace.site(LocationId(clock)) };
    let at = u32::try_from(*at).ok().map(site);
    Extremes {
        latest: *latest as i64,
        at,
        outside: beside.map(|time| time as i64),
    }
}
