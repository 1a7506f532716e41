//! Rewrites the events of a location with new times; everything else is copied byte by byte.

use std::fs::File;
use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};

use super::chunks::RecordWriter;
use super::event_file::EventFile;
use super::events::is_in_trace;
use super::files::local;
use super::{Archive, Otf2Error};

/// Recorded and new time of an event in ticks.
#[derive(Clone, Copy)]
struct Moved {
    from: u64,
    to: u64,
}

impl Archive {
    /// Writes the events of a location to a file. Events that are not in the trace are interpolated
    /// between those that are.
    pub(super) fn rewrite(
        &self,
        index: usize,
        times: &[Timestamp<Global>],
        to: &Path,
    ) -> Result<(), Otf2Error> {
        let path = local(&self.anchor, self.locations()[index].id, "evt");
        // The file is read twice in parallel, as the next event of the trace must be known in
        // advance.
        let open = || EventFile::open(&path, self.chunks.events);
        let [mut file, mut ahead] = [open()?, open()?];
        let (mut times, mut last) = (times.iter(), 0);
        let mut next_moved = || {
            let (from, time) = match (ahead.next_in_trace()?, times.next()) {
                (Some(from), Some(time)) => (from, *time),
                (None, None) => return Ok(None),
                _ => return Err(self.wrong_times(index)),
            };
            let [first, end] = self.ticks_between(index, time, time)?;
            // `end` is not negative.
            let to = (first.max(0) as u64).midpoint(end as u64);
            if to < last {
                let event = ahead.events - 1;
                let why = format!(
                    "the corrected time of event {event} is before that of the preceding one"
                );
                return Err(Otf2Error::content(&path, why));
            }
            last = to;
            Ok(Some(Moved { from, to }))
        };
        let new = File::create_new(to).map_err(Otf2Error::io(to))?;
        let mut new = RecordWriter::new(new, self.chunks.events, file.order());
        let (mut before, mut next) = (None, next_moved()?);
        while let Some(record) = file.next()? {
            let time = if is_in_trace(record.kind) {
                before = next;
                next = next_moved()?;
                before.ok_or_else(|| self.wrong_times(index))?.to
            } else {
                between(before, record.time, next)
            };
            new.add_event(time, record.bytes)
                .map_err(Otf2Error::io(to))?;
        }
        new.end().map(drop).map_err(Otf2Error::io(to))
    }
}

/// Returns the new time of an event that was recorded between these.
fn between(before: Option<Moved>, time: u64, after: Option<Moved>) -> u64 {
    match (before, after) {
        (Some(before), Some(after)) if before.from < after.from => {
            let [elapsed, all] =
                [time.clamp(before.from, after.from), after.from].map(|time| time - before.from);
            let share = u128::from(elapsed) * u128::from(after.to - before.to) / u128::from(all);
            // At most `after.to - before.to`, which fits.
            before.to + share as u64
        }
        (Some(before), Some(_)) => before.to,
        (Some(before), None) => before.to.saturating_add(time.saturating_sub(before.from)),
        (None, Some(after)) => after.to.saturating_sub(after.from.saturating_sub(time)),
        (None, None) => time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_between_are_interpolated() {
        let before = Some(Moved {
            from: 100,
            to: 1_000,
        });
        let after = Some(Moved {
            from: 200,
            to: 1_050,
        });
        let found = [90, 100, 101, 150, 199, 200, 210].map(|time| between(before, time, after));
        assert_eq!(found, [1_000, 1_000, 1_000, 1_025, 1_049, 1_050, 1_050]);
        assert_eq!(between(before, 170, None), 1_070);
        assert_eq!(between(None, 170, after), 1_020);
        assert_eq!(between(None, 0, Some(Moved { from: 200, to: 50 })), 0);
        assert_eq!(
            between(
                before,
                100,
                Some(Moved {
                    from: 100,
                    to: 1_010
                })
            ),
            1_000
        );
        let far = Some(Moved {
            from: u64::MAX,
            to: u64::MAX,
        });
        assert_eq!(
            between(Some(Moved { from: 0, to: 0 }), u64::MAX - 1, far),
            u64::MAX - 1
        );
    }
}
