//! Rewrites the events of a location with new times; everything else is copied byte by byte.

use core::slice;
use std::fs::File;
use std::path::{Path, PathBuf};

use downbeat_clock_core::{Global, Timestamp};

use downbeat_otf2::EventReader;
use downbeat_otf2::raw::{BUFFER_FLUSH, RecordWriter};

use super::times::ArchiveTimes;
use super::{Archive, Otf2Error};

/// Recorded and new time of an event in ticks.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// New times of the events of a location, in their order.
pub(super) struct NewTimes<'a> {
    archive: &'a Archive,
    index: usize,
    path: PathBuf,
    file: EventReader,
    times: slice::Iter<'a, Timestamp<Global>>,
    last: u64,
}

impl<'a> NewTimes<'a> {
    pub(super) fn open(
        archive: &'a Archive,
        index: usize,
        times: ArchiveTimes<'a>,
    ) -> Result<Self, Otf2Error> {
        Ok(Self {
            archive,
            index,
            file: archive.events(index)?,
            path: archive.path_of(index, "evt"),
            times: times.of(index).iter(),
            last: 0,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Moved>, Otf2Error> {
        let (from, time) = match (self.file.next()?, self.times.next()) {
            (Some(from), Some(time)) => (from.time, *time),
            (None, None) => return Ok(None),
            _ => return Err(self.archive.wrong_times(self.index)),
        };
        let [first, end] = self.archive.ticks_between(self.index, time, time)?;
        // `end` is not negative.
        let to = (first.max(0) as u64).midpoint(end as u64);
        if to < self.last {
            let event = self.file.count() - 1;
            let why =
                format!("the corrected time of event {event} is before that of the preceding one");
            return Err(Otf2Error::content(&self.path, why));
        }
        self.last = to;
        Ok(Some(Moved { from, to }))
    }
}

impl Archive {
    /// Writes the events of a location to a file, with these times. The ends of flushes move with the
    /// events around them.
    pub(super) fn rewrite(
        &self,
        index: usize,
        times: ArchiveTimes<'_>,
        to: &Path,
    ) -> Result<(), Otf2Error> {
        let mut file = self.events(index)?;
        let order = file.order();
        let new = File::create_new(to).map_err(Otf2Error::io(to))?;
        let mut new = RecordWriter::new(new, self.files.anchor().event_chunk, order);
        let mut new_times = NewTimes::open(self, index, times)?;
        // The events around the end of the last flush, which are read ahead.
        let mut around: Option<(NewTimes<'_>, Moved, Option<Moved>)> = None;
        while let Some(record) = file.next()? {
            let moved = new_times.next()?.ok_or_else(|| self.wrong_times(index))?;
            let stop = match record.data.try_into() {
                Ok(stop) if record.kind == BUFFER_FLUSH => order.full(stop),
                _ => {
                    new.add_event(moved.to, record.bytes)
                        .map_err(Otf2Error::io(to))?;
                    continue;
                }
            };
            if around.is_none() {
                let mut ahead = NewTimes::open(self, index, times)?;
                let first = ahead.next()?.unwrap_or(moved);
                let second = ahead.next()?;
                around = Some((ahead, first, second));
            }
            let mut stopped = moved.to;
            if let Some((ahead, before, after)) = &mut around {
                while let Some(next) = after.filter(|next| next.from < stop) {
                    *before = next;
                    *after = ahead.next()?;
                }
                stopped = between(*before, stop, *after).max(moved.to);
            }
            let mut bytes = record.bytes.to_vec();
            let at = bytes.len() - size_of_val(&stopped);
            bytes[at..].copy_from_slice(&order.bytes(stopped));
            new.add_event(moved.to, &bytes).map_err(Otf2Error::io(to))?;
        }
        match new_times.next()? {
            Some(_) => Err(self.wrong_times(index)),
            None => new.end().map(drop).map_err(Otf2Error::io(to)),
        }
    }
}

/// Returns the new time of what was recorded at `time`, between these events.
pub(super) fn between(before: Moved, time: u64, after: Option<Moved>) -> u64 {
    let elapsed = time.saturating_sub(before.from);
    match after {
        Some(after) if before.from < after.from && time <= after.from => {
            let all = after.from - before.from;
            let share = u128::from(elapsed) * u128::from(after.to - before.to) / u128::from(all);
            // At most `after.to - before.to`, which fits.
            before.to + share as u64
        }
        _ => before.to.saturating_add(elapsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_events_are_interpolated() {
        let moved = |from, to| Moved { from, to };
        let (before, after) = (moved(100, 1_000), Some(moved(200, 1_050)));
        let found = [100, 101, 150, 199, 200].map(|time| between(before, time, after));
        assert_eq!(found, [1_000, 1_000, 1_025, 1_049, 1_050]);
        assert_eq!(between(before, 170, None), 1_070);
        assert_eq!(between(before, 50, after), 1_000);
        assert_eq!(between(before, 100, Some(moved(100, 1_010))), 1_000);
        let far = Some(moved(u64::MAX, u64::MAX));
        assert_eq!(between(moved(0, 0), u64::MAX - 1, far), u64::MAX - 1);
    }
}
