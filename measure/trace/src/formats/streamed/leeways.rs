//! Ranges in which the corrected times of a stream may vary, in temporary files.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use rustc_hash::FxHashMap;

use crate::LocationId;
use crate::formats::bytes::{put, take};
use crate::formats::spill::{ByteCursor, ByteLists, NumberCursor, NumberLists};
use crate::leeway::{Leeway, LeewayRole};
use crate::streaming::Link;
use crate::streaming::{Census, Linked};

/// Ranges in which the times of all events may vary, by clock; and summaries of all locations.
#[derive(Debug)]
pub(super) struct StreamedLeeways {
    /// For each clock, its events in order: their locations, and two flags.
    lists: ByteLists,
    locations: Vec<MovedLocation>,
}

/// Summary of the corrected times of a location.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MovedLocation {
    /// Times of the first and the last event.
    pub(super) span: Option<[Timestamp<Global>; 2]>,
    /// True if a time is not the measured one.
    pub(super) is_moved: bool,
}

/// Pass over corrected times, in causal order.
#[derive(Debug)]
pub(super) struct LeewayPass<'a> {
    census: &'a Census,
    /// For each enter 1 if others wait for it.
    enters: NumberLists,
    cursors: Vec<NumberCursor>,
    found: StreamedLeeways,
    /// For each clock, its last event, whose successor is not known, and the time before it.
    last: Vec<Option<LastEvent>>,
}

#[derive(Clone, Copy, Debug)]
struct LastEvent {
    location: LocationId,
    role: LeewayRole,
    time: Timestamp<Global>,
    before: Option<Timestamp<Global>>,
}

/// Flags of an event in a list.
const EARLIER: u64 = 1;
const LATER: u64 = 2;

impl<'a> LeewayPass<'a> {
    pub(super) fn new(
        census: &'a Census,
        enters: NumberLists,
        beside: &Path,
    ) -> Result<Self, FileError> {
        let locations = census.clocks().len();
        Ok(Self {
            census,
            enters,
            cursors: NumberCursor::all(census.ids()),
            found: StreamedLeeways {
                lists: ByteLists::new(beside)?,
                locations: vec![MovedLocation::default(); locations],
            },
            last: vec![None; locations],
        })
    }

    /// Takes the next event with its measured and its corrected time.
    pub(super) fn take(
        &mut self,
        event: Linked,
        measured: Timestamp<Global>,
        time: Timestamp<Global>,
    ) -> Result<(), FileError> {
        let location = event.id.location;
        let of = &mut self.found.locations[location.index()];
        of.is_moved |= time != measured;
        let first = of.span.map_or(time, |[first, _]| first);
        of.span = Some([first, time]);
        let role = match event.link {
            Link::Nothing
            | Link::Exit {
                receives: false, ..
            } => LeewayRole::Nothing,
            Link::Send { .. } | Link::LateSend { .. } => LeewayRole::IsAwaited,
            Link::Receive { .. } | Link::EarlyReceive { .. } | Link::Exit { .. } => {
                LeewayRole::Waits
            }
            Link::Enter { .. } => match self.cursors[location.index()].next(&self.enters)? {
                Some(1) => LeewayRole::IsAwaited,
                _ => LeewayRole::Nothing,
            },
        };
        let clock = self.census.clocks()[location.index()] as usize;
        let before = self.last[clock];
        if let Some(last) = before {
            self.found.put(clock, last, Some(time))?;
        }
        self.last[clock] = Some(LastEvent {
            location,
            role,
            time,
            before: before.map(|before| before.time),
        });
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<StreamedLeeways, FileError> {
        for (clock, last) in self.last.into_iter().enumerate() {
            last.map_or(Ok(()), |last| self.found.put(clock, last, None))?;
        }
        self.found.lists.finish()?;
        Ok(self.found)
    }
}

impl StreamedLeeways {
    fn put(
        &mut self,
        clock: usize,
        last: LastEvent,
        after: Option<Timestamp<Global>>,
    ) -> Result<(), FileError> {
        let Leeway { earlier, later } = Leeway::between(last.role, [last.before, after], last.time);
        let flags = (u64::from(earlier) * EARLIER) | (u64::from(later) * LATER);
        let number = (last.location.index() as u64) << 2 | flags;
        self.lists.put(clock, |bytes| put(bytes, number))
    }

    /// Declares locations as moved whose clocks were pre-synchronized.
    pub(super) fn move_all(&mut self, is_moved: impl Fn(LocationId) -> bool) {
        for (location, of) in (0..).zip(&mut self.locations) {
            of.is_moved |= is_moved(LocationId(location));
        }
    }

    pub(super) fn of(&self, location: LocationId) -> &MovedLocation {
        &self.locations[location.index()]
    }

    /// Returns the events of a clock, as [`Trace::leeway`](crate::Trace::leeway) does.
    pub(super) fn of_clock<'a>(
        &'a self,
        clock: LocationId,
        times: &'a NumberLists,
    ) -> impl Iterator<Item = Result<(LocationId, [Timestamp<Global>; 2]), FileError>> + 'a {
        let mut list = ByteCursor::default();
        let mut cursors = FxHashMap::default();
        let mut next = move || {
            let number = list.next(&self.lists, clock.index(), take)?;
            let Some(number) = number else {
                return Ok(None);
            };
            let location = LocationId((number >> 2) as u32);
            let cursor = cursors.entry(location.0);
            let cursor = cursor.or_insert_with(|| NumberCursor::new(location));
            let time = cursor.next(times)?.map(Timestamp::from_nanos);
            let leeway = Leeway {
                earlier: number & EARLIER != 0,
                later: number & LATER != 0,
            };
            Ok(time.map(|time| (location, leeway.around(time))))
        };
        std::iter::from_fn(move || next().transpose())
    }
}
