//! Pre-synchronization of the times of a stream, in every pass.

use crate::presync::{ClockMaps, StreamedMaps};
use crate::resolution::StreamedTicks;
use crate::streaming::Census;
use crate::{EventId, Resolution, TraceError};
use downbeat_clock_core::{Duration, Global, Timestamp};

/// Times of an event before the correction.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimesBefore {
    pub(super) measured: Timestamp<Global>,
    pub(super) pre_synchronized: Timestamp<Global>,
    /// Pre-synchronized time in the unit of the logical clock.
    pub(super) ticks: Timestamp<Global>,
}

/// Pre-synchronization of the times of all events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeMap<'a> {
    pub(super) maps: Option<&'a ClockMaps>,
    /// Time that is added, so that no time is before the origin.
    pub(super) shift: Duration,
    /// Resolution of the logical clock, if it is coarser than a nanosecond.
    pub(super) resolution: Option<Resolution>,
}

/// State of one pass over all events.
pub(super) struct TimePass<'a> {
    map: TimeMap<'a>,
    maps: Option<StreamedMaps<'a>>,
    ticks: Option<StreamedTicks>,
    /// First event whose pre-synchronized time is out of range.
    pub(super) far: Option<(EventId, TraceError)>,
}

impl<'a> TimeMap<'a> {
    /// Returns the state before the first event.
    pub(super) fn begin(self, census: &Census) -> TimePass<'a> {
        TimePass {
            map: self,
            maps: self.maps.map(|maps| maps.streamed(census)),
            ticks: self
                .resolution
                .map(|resolution| StreamedTicks::new(resolution, census.clocks().len())),
            far: None,
        }
    }
}

impl TimePass<'_> {
    /// Returns the times of the next event; `None` if that of any event so far is out of range.
    #[inline]
    pub(super) fn take(
        &mut self,
        clocks: &[u32],
        event: EventId,
        measured: Timestamp<Global>,
    ) -> Option<TimesBefore> {
        let mut time = measured;
        if let Some(maps) = &mut self.maps {
            match maps.apply(event, time) {
                Ok(mapped) if self.far.is_none() => time = mapped + self.map.shift,
                Ok(_) => return None,
                Err(why) => {
                    if self.far.is_none_or(|(first, _)| event < first) {
                        self.far = Some((event, why));
                    }
                    return None;
                }
            }
        }
        let mut ticks = time;
        if let Some(resolution) = &mut self.ticks {
            (ticks, time) = resolution.of(clocks[event.location.index()], time);
        }
        Some(TimesBefore {
            measured,
            pre_synchronized: time,
            ticks,
        })
    }
}
