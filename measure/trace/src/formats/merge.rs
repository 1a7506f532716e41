//! Items of an archive in the order of time: a merge of its locations in temporary files.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_files::varint::{read_varint as take_number, write_varint};

use super::definitions::TraceDefinitions;
use super::item::Item;
use super::spill::{ByteCursor, ByteLists};
use crate::encoding::Encoded;
use crate::{Event, Quantity};

/// Items that are put in the order of time: first all definitions, then the events of all locations.
/// Events at one time are in the order of their locations.
#[derive(Debug)]
pub struct MergedItems {
    pub(super) definitions: TraceDefinitions,
    /// Number of items.
    count: u64,
    /// Events by location: the time since the last one, and the event.
    lists: ByteLists,
    /// Time of the last event of each location.
    last: Vec<i64>,
    /// First and last time.
    span: Option<[i64; 2]>,
    /// Communicators of windows: those that accesses are in.
    windows: BTreeSet<u32>,
    /// Number of events of unknown size less that of events without bytes.
    unsized_events: i64,
    /// Metrics with values that are not whole numbers.
    real_metrics: BTreeSet<u32>,
    has_signals: bool,
}

impl MergedItems {
    /// Begins temporary files next to `beside`.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn new(beside: &Path) -> Result<Self, FileError> {
        Ok(Self {
            definitions: TraceDefinitions::default(),
            count: 0,
            lists: ByteLists::new(beside)?,
            last: vec![],
            span: None,
            windows: BTreeSet::new(),
            unsized_events: 0,
            real_metrics: BTreeSet::new(),
            has_signals: false,
        })
    }

    /// Takes the next item; the times of a location must not decrease.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn add_item(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        self.count += 1;
        match *item {
            Item::Event {
                location,
                time,
                event,
            } => {
                self.note(event);
                self.put(location, time, event)
            }
            _ => {
                self.definitions.take(item);
                Ok(())
            }
        }
    }

    /// Notes what an archive states of all events.
    fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Access { communicator, .. } => drop(self.windows.insert(communicator)),
            Event::Signal { .. } | Event::Wait { .. } => self.has_signals = true,
            Event::Metric {
                metric,
                value: Quantity::Real(_),
            } => drop(self.real_metrics.insert(metric)),
            _ => {}
        }
        match event.bytes() {
            Some(0) => self.unsized_events -= 1,
            None if event.has_bytes() => self.unsized_events += 1,
            _ => {}
        }
    }

    fn put(
        &mut self,
        location: u32,
        time: Timestamp<Global>,
        event: Event<'_>,
    ) -> Result<(), FileError> {
        let location = location as usize;
        if self.last.len() <= location {
            self.last.resize(location + 1, 0);
        }
        let [first, last] = self.span.unwrap_or([time.as_nanos(); 2]);
        self.span = Some([first.min(time.as_nanos()), last.max(time.as_nanos())]);
        let elapsed = time.as_nanos().wrapping_sub(self.last[location]);
        self.last[location] = time.as_nanos();
        self.lists.put(location, |bytes| {
            write_varint(bytes, elapsed as u64);
            event.encode(bytes);
        })
    }

    /// Ends writing.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn finish(&mut self) -> Result<(), FileError> {
        self.lists.finish()
    }

    /// Returns the number of items.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first and the last time in nanoseconds; `None` if there are no events.
    pub(super) const fn span(&self) -> Option<[i64; 2]> {
        self.span
    }

    /// Returns the communicators of windows.
    pub(super) const fn windows(&self) -> &BTreeSet<u32> {
        &self.windows
    }

    /// Returns true if there are more events of unknown size than events without bytes.
    pub(super) const fn is_mostly_unsized(&self) -> bool {
        self.unsized_events > 0
    }

    /// Returns true if there are signals or waits.
    pub(super) const fn has_signals(&self) -> bool {
        self.has_signals
    }

    /// Returns true if all values of a metric are whole numbers.
    pub(super) fn is_whole(&self, metric: u32) -> bool {
        !self.real_metrics.contains(&metric)
    }

    /// Passes the events of a location to `take`, with their positions and times.
    pub(super) fn each_of<E: From<FileError>>(
        &self,
        location: u32,
        mut take: impl FnMut((u64, i64), Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut cursor, mut time, mut position) = (ByteCursor::default(), 0_i64, 0);
        loop {
            let event = cursor.next(&self.lists, location as usize, |from| {
                time = time.wrapping_add(take_number(from)? as i64);
                Event::decode(from)
            })?;
            let Some(event) = event else {
                return Ok(());
            };
            take((position, time), event)?;
            position += 1;
        }
    }

    /// Passes all items to `take`.
    ///
    /// # Errors
    /// Those of `take`, and if a temporary file cannot be read.
    pub fn for_each_item<E: From<FileError>>(
        &self,
        mut take: impl FnMut(&Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.definitions.each(&mut take)?;
        let mut cursors: Vec<(ByteCursor, i64)> = vec![];
        cursors.resize_with(self.last.len(), Default::default);
        let next = |location: u32, (cursor, last): &mut (ByteCursor, i64)| {
            let elapsed = cursor.next(&self.lists, location as usize, take_number)?;
            *last = last.wrapping_add(elapsed.unwrap_or(0) as i64);
            Ok::<_, FileError>(elapsed.map(|_| *last))
        };
        let mut queue = BinaryHeap::new();
        for (location, cursor) in (0..).zip(&mut cursors) {
            queue.extend(next(location, cursor)?.map(|time| Reverse((time, location))));
        }
        while let Some(Reverse((mut time, location))) = queue.pop() {
            let until = queue.peek().map(|Reverse(until)| *until);
            let of = &mut cursors[location as usize];
            loop {
                let event = of.0.next(&self.lists, location as usize, Event::decode)?;
                // It follows its time in the same piece.
                let Some(event) = event else { break };
                take(&Item::Event {
                    location,
                    time: Timestamp::from_nanos(time),
                    event,
                })?;
                let Some(later) = next(location, of)? else {
                    break;
                };
                if until.is_some_and(|until| until < (later, location)) {
                    queue.push(Reverse((later, location)));
                    break;
                }
                time = later;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use downbeat_files::testing::TemporaryFolder;

    use super::*;
    use crate::Place;

    #[test]
    fn events_are_merged_by_time() {
        let (_folder, path) = TemporaryFolder::with_file("a", b"");
        let mut merged = MergedItems::new(&path).unwrap();
        let place = Place {
            node: 3,
            process: 7,
        };
        merged
            .add_item(&Item::Location { place, name: "a" })
            .unwrap();
        merged
            .add_item(&Item::Thread { rank: 0, name: "b" })
            .unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut expected = vec![];
        for location in 0..5 {
            let mut time = rng.i64(-50..50);
            for index in 0..3_000_u64 {
                time += rng.i64(0..4);
                let (bytes, id) = ((index % 3 == 0).then_some(index), index * 7);
                let at = Timestamp::from_nanos(time);
                let event = |event| Item::Event {
                    location,
                    time: at,
                    event,
                };
                let value = |value| event(Event::Metric { metric: 3, value });
                let item = match index % 4 {
                    0 => event(Event::Send {
                        to: 1,
                        communicator: 2,
                        tag: -3,
                        request: bytes,
                        bytes,
                    }),
                    1 => event(Event::Note("some text")),
                    2 => value(Quantity::Whole(-(id as i64))),
                    _ => value(Quantity::Real(id as f64 / 3.0)),
                };
                merged.add_item(&item).unwrap();
                expected.push((time, location, format!("{item:?}")));
            }
        }
        merged.finish().unwrap();
        expected.sort_by_key(|(time, location, _)| (*time, *location));
        for _ in 0..2 {
            let mut found = vec![];
            merged
                .for_each_item(|item| {
                    found.push(format!("{item:?}"));
                    Ok::<_, FileError>(())
                })
                .unwrap();
            assert!(found[0].contains("process: 7") && found[1].contains("rank: 0"));
            assert!(
                found[2..]
                    .iter()
                    .eq(expected.iter().map(|(.., event)| event))
            );
        }
    }
}
