//! Rewrites the events of a location with new times; everything else is copied byte by byte.

use core::slice;
use std::fs::File;
use std::path::Path;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_otf2::raw::{BUFFER_FLUSH, RecordWriter};
use downbeat_otf2::{EventReader, LocalDefinitions};

use super::times::ArchiveTimes;
use super::{Archive, Otf2Error};

/// New times of the events of a location in ticks, in their order.
struct NewTimes<'a> {
    archive: &'a Archive,
    index: usize,
    times: slice::Iter<'a, Timestamp<Global>>,
    shift: Duration,
    /// Number of times so far, and the last one.
    count: usize,
    last: u64,
}

impl<'a> NewTimes<'a> {
    fn new(archive: &'a Archive, index: usize, times: ArchiveTimes<'a>) -> Self {
        Self {
            archive,
            index,
            times: times.of(index).iter(),
            shift: times.shift,
            count: 0,
            last: 0,
        }
    }

    fn next(&mut self) -> Result<u64, Otf2Error> {
        let time = self.times.next();
        let time = *time.ok_or_else(|| self.archive.wrong_times(self.index))?;
        let [first, end] = self
            .archive
            .ticks_between(self.index, [time; 2], self.shift)?;
        // `end` is not negative.
        let to = (first.max(0) as u64).midpoint(end as u64);
        if to < self.last {
            let path = self.archive.path_of(self.index, "evt");
            let event = self.count;
            let why =
                format!("the corrected time of event {event} is before that of the preceding one");
            return Err(Otf2Error::content(&path, why));
        }
        self.count += 1;
        self.last = to;
        Ok(to)
    }

    /// Checks that there are no more times.
    fn end(&self) -> Result<(), Otf2Error> {
        match self.times.as_slice() {
            [] => Ok(()),
            _ => Err(self.archive.wrong_times(self.index)),
        }
    }
}

/// Time of an event before and after the correction, in ticks.
#[derive(Clone, Copy)]
struct Moved {
    from: u64,
    to: u64,
}

/// Clock of a location before and after the correction, which gives new times to what was
/// recorded between events.
pub(super) struct MovedClock<'a> {
    file: EventReader,
    times: NewTimes<'a>,
    /// Clock offsets that readers added to the times before.
    offsets: &'a LocalDefinitions,
    first: Option<Moved>,
    before: Option<Moved>,
    after: Option<Moved>,
}

impl<'a> MovedClock<'a> {
    pub(super) fn open(
        archive: &'a Archive,
        index: usize,
        times: ArchiveTimes<'a>,
        offsets: &'a LocalDefinitions,
    ) -> Result<Self, Otf2Error> {
        let mut clock = Self {
            file: archive.events(index)?,
            times: NewTimes::new(archive, index, times),
            offsets,
            first: None,
            before: None,
            after: None,
        };
        clock.after = clock.next()?;
        clock.first = clock.after;
        Ok(clock)
    }

    fn next(&mut self) -> Result<Option<Moved>, Otf2Error> {
        let Some(record) = self.file.next()? else {
            return self.times.end().map(|()| None);
        };
        let from = self.offsets.corrected(record.time.min(i64::MAX as u64));
        let from = (from as i64).max(0) as u64;
        let to = self.times.next()?;
        Ok(Some(Moved { from, to }))
    }

    /// Returns the new time of what readers found at `time`, which is not before the last
    /// one: it moves with the last event at that time.
    pub(super) fn apply(&mut self, time: u64) -> Result<u64, Otf2Error> {
        self.apply_behind(time, |event| event <= time)
    }

    /// Returns the new time of the end of a flush at `time`, which is not before the last
    /// one: it moves with the first event at that time.
    fn apply_to_flush(&mut self, time: u64) -> Result<u64, Otf2Error> {
        self.apply_behind(time, |event| event < time)
    }

    fn apply_behind(
        &mut self,
        time: u64,
        is_before: impl Fn(u64) -> bool,
    ) -> Result<u64, Otf2Error> {
        while let Some(next) = self.after.filter(|next| is_before(next.from)) {
            self.before = Some(next);
            self.after = self.next()?;
        }
        Ok(match (self.before, self.first) {
            (Some(before), _) => between(before, time, self.after),
            (None, Some(first)) => first.to.saturating_sub(first.from.saturating_sub(time)),
            (None, None) => time,
        })
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
        let mut new_times = NewTimes::new(self, index, times);
        // Reads the events around the ends of flushes ahead.
        let (unmoved, mut ahead) = (LocalDefinitions::default(), None);
        while let Some(record) = file.next()? {
            let time = new_times.next()?;
            let stop = match record.data.try_into() {
                Ok(stop) if record.kind == BUFFER_FLUSH => order.full(stop),
                _ => {
                    new.add_event(time, record.bytes)
                        .map_err(Otf2Error::io(to))?;
                    continue;
                }
            };
            let mut clock = match ahead.take() {
                Some(clock) => clock,
                None => MovedClock::open(self, index, times, &unmoved)?,
            };
            let stopped = clock.apply_to_flush(stop)?.max(time);
            ahead = Some(clock);
            let mut bytes = record.bytes.to_vec();
            let at = bytes.len() - size_of_val(&stopped);
            bytes[at..].copy_from_slice(&order.bytes(stopped));
            new.add_event(time, &bytes).map_err(Otf2Error::io(to))?;
        }
        new_times.end()?;
        new.finish().map(drop).map_err(Otf2Error::io(to))
    }
}

/// Returns the new time of what was recorded at `time`, between these events.
fn between(before: Moved, time: u64, after: Option<Moved>) -> u64 {
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
