//! Items of an archive in the order of time: a merge of its locations in temporary files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use downbeat_clock_core::{Global, Local, Timestamp};
use downbeat_files::FileError;

use super::action::{read_action, write_action};
use super::bytes::{Slice, put, take as take_number};
use super::item::{Item, What};
use super::spill::{ByteCursor, ByteLists};
use crate::Place;

/// Items that are put in the order of time: first all definitions, then the events of all locations.
/// Events at one time are in the order of their locations.
#[derive(Debug)]
pub struct MergedItems {
    definitions: Vec<Definition>,
    /// Events by location: the time since the last one, the length of a message plus one, and the
    /// action.
    lists: ByteLists,
    /// Time of the last event of each location.
    last: Vec<i64>,
    /// First and last time.
    span: Option<[i64; 2]>,
}

/// Definition or sample.
#[derive(Debug)]
enum Definition {
    Location(Place, String),
    Thread(u32, String),
    Communicator(Vec<u32>),
    Region(String),
    Master(u32),
    Sample(u32, u32, [i64; 2]),
}

impl MergedItems {
    /// Begins temporary files next to `beside`.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn new(beside: &Path) -> Result<Self, FileError> {
        Ok(Self {
            definitions: vec![],
            lists: ByteLists::new(beside)?,
            last: vec![],
            span: None,
        })
    }

    /// Takes the next item; the times of a location must not decrease. Messages may have a length in
    /// bytes.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn take(&mut self, item: &Item<'_>, length: Option<u64>) -> Result<(), FileError> {
        let definition = match *item {
            Item::Event {
                location,
                time,
                what,
            } => return self.event(location, time, (what, length)),
            Item::Location { place, name } => Definition::Location(place, name.to_owned()),
            Item::Thread { rank, name } => Definition::Thread(rank, name.to_owned()),
            Item::Communicator { members } => Definition::Communicator(members.to_vec()),
            Item::Region { name } => Definition::Region(name.to_owned()),
            Item::Master { location } => Definition::Master(location),
            Item::Sample {
                location,
                session,
                local,
                master,
            } => Definition::Sample(location, session, [local.as_nanos(), master.as_nanos()]),
        };
        self.definitions.push(definition);
        Ok(())
    }

    fn event(
        &mut self,
        location: u32,
        time: Timestamp<Global>,
        (what, length): (What<'_>, Option<u64>),
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
            put(bytes, elapsed as u64);
            put(bytes, length.map_or(0, |length| length.saturating_add(1)));
            write_action(bytes, what);
        })
    }

    /// Ends writing.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn finish(&mut self) -> Result<(), FileError> {
        self.lists.finish()
    }

    /// Returns the first and the last time in nanoseconds; `None` if there are no events.
    pub(super) const fn span(&self) -> Option<[i64; 2]> {
        self.span
    }

    /// Returns all definitions and samples.
    pub(super) fn definitions(&self) -> impl Iterator<Item = Item<'_>> {
        self.definitions.iter().map(Definition::item)
    }

    /// Passes the events of a location to `take`: their times and types, and the lengths of messages.
    pub(super) fn each_of<E: From<FileError>>(
        &self,
        location: u32,
        mut take: impl FnMut(Timestamp<Global>, What<'_>, Option<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut cursor, mut text, mut time) = (ByteCursor::default(), String::new(), 0_i64);
        loop {
            let event = cursor.next(&self.lists, location as usize, |from| {
                time = time.wrapping_add(take_number(from)? as i64);
                read_event(from, &mut text)
            })?;
            let Some((what, length)) = event else {
                return Ok(());
            };
            take(Timestamp::from_nanos(time), what, length)?;
        }
    }

    /// Passes all items to `take`, with the lengths of messages.
    ///
    /// # Errors
    /// Those of `take`, and if a temporary file cannot be read.
    pub fn each<E: From<FileError>>(
        &self,
        mut take: impl FnMut(&Item<'_>, Option<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.definitions()
            .try_for_each(|definition| take(&definition, None))?;
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
        let mut text = String::new();
        while let Some(Reverse((mut time, location))) = queue.pop() {
            let until = queue.peek().map(|Reverse(until)| *until);
            let of = &mut cursors[location as usize];
            loop {
                let event = of.0.next(&self.lists, location as usize, |from| {
                    read_event(from, &mut text)
                })?;
                // It follows its time in the same piece.
                let Some((what, length)) = event else { break };
                let item = Item::Event {
                    location,
                    time: Timestamp::from_nanos(time),
                    what,
                };
                take(&item, length)?;
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

/// Reads an event behind its time.
fn read_event<'a>(from: &mut &[u8], text: &'a mut String) -> Option<(What<'a>, Option<u64>)> {
    let length = take_number(from)?.checked_sub(1);
    let mut bytes = Slice::new(from, 0, 0);
    let what = read_action(&mut bytes, text).ok()?;
    *from = &from[bytes.at()..];
    Some((what, length))
}

impl Definition {
    fn item(&self) -> Item<'_> {
        match self {
            Self::Location(place, name) => Item::Location {
                place: *place,
                name,
            },
            Self::Thread(rank, name) => Item::Thread { rank: *rank, name },
            Self::Communicator(members) => Item::Communicator { members },
            Self::Region(name) => Item::Region { name },
            Self::Master(location) => Item::Master {
                location: *location,
            },
            Self::Sample(location, session, [local, master]) => Item::Sample {
                location: *location,
                session: *session,
                local: Timestamp::<Local>::from_nanos(*local),
                master: Timestamp::<Global>::from_nanos(*master),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use downbeat_files::testing::Folder;

    use super::*;

    #[test]
    fn events_are_merged_by_time() {
        let (_folder, path) = Folder::with("a", b"");
        let mut merged = MergedItems::new(&path).unwrap();
        let place = Place {
            node: 3,
            process: 7,
        };
        merged
            .take(&Item::Location { place, name: "a" }, None)
            .unwrap();
        merged
            .take(&Item::Thread { rank: 0, name: "b" }, None)
            .unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut expected = vec![];
        for location in 0..5 {
            let mut time = rng.i64(-50..50);
            for index in 0..3_000_u64 {
                time += rng.i64(0..4);
                let (length, id) = ((index % 3 == 0).then_some(index), index * 7);
                let item = Item::Event {
                    location,
                    time: Timestamp::from_nanos(time),
                    what: if index % 2 == 0 {
                        What::Signal { id }
                    } else {
                        What::Note("some text")
                    },
                };
                merged.take(&item, length).unwrap();
                expected.push((time, location, format!("{item:?} {length:?}")));
            }
        }
        merged.finish().unwrap();
        expected.sort_by_key(|(time, location, _)| (*time, *location));
        for _ in 0..2 {
            let mut found = vec![];
            merged
                .each(|item, length| {
                    found.push(format!("{item:?} {length:?}"));
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
