//! Data that do not fit in memory, in temporary files without a name, which are deleted when they are
//! closed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::{EventCodec, Linked, LocationId, SurveyedEvent};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_files::create_beside;

/// Number of bytes that are written or read at once for each location.
const LOCATION_CHUNK: usize = 16 << 10;
/// Number of bytes that are written or read at once, for data of all locations.
const CHUNK: usize = 256 << 10;

/// Temporary file.
#[derive(Debug)]
struct Spill {
    file: File,
    /// Path of the output that the file is needed for, for error messages.
    path: PathBuf,
    /// Name of the file, if it could not be removed while the file is open.
    named: Option<PathBuf>,
    end: u64,
}

impl Spill {
    /// Creates the file in the folder of `path`.
    fn new(path: &Path) -> Result<Self, FileError> {
        let open = |beside: &Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(beside)
        };
        let (name, file) = create_beside(path, open).map_err(FileError::io(path))?;
        let named = fs::remove_file(&name).is_err().then_some(name);
        Ok(Self {
            file,
            path: path.to_owned(),
            named,
            end: 0,
        })
    }

    /// Adds bytes at the end, and returns their range.
    fn append(&mut self, bytes: &[u8]) -> Result<Piece, FileError> {
        let at = self.end;
        self.seek(at)
            .and_then(|()| self.file.write_all(bytes))
            .map_err(FileError::io(&self.path))?;
        self.end += bytes.len() as u64;
        Ok(Piece {
            at,
            length: bytes.len() as u32,
        })
    }

    fn read(&self, piece: Piece, to: &mut Vec<u8>) -> Result<(), FileError> {
        to.resize(piece.length as usize, 0);
        self.seek(piece.at)
            .and_then(|()| (&self.file).read_exact(to))
            .map_err(FileError::io(&self.path))
    }

    fn seek(&self, at: u64) -> io::Result<()> {
        (&self.file).seek(SeekFrom::Start(at)).map(drop)
    }

    /// Creates the error for content that was not written like this.
    fn damaged(&self) -> FileError {
        FileError::content(&self.path, "a temporary file was modified")
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let Some(name) = &self.named {
            // Errors cannot be reported here.
            let _ = fs::remove_file(name);
        }
    }
}

/// Part of a temporary file.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: u64,
    length: u32,
}

/// Lists of events, one for each location.
#[derive(Debug)]
pub(super) struct EventLists {
    spill: Spill,
    lists: Vec<EventList>,
}

#[derive(Debug, Default)]
struct EventList {
    codec: EventCodec,
    pieces: Vec<Piece>,
    /// Events that are not written, or that were read: those from `at` on are next.
    bytes: Vec<u8>,
    at: usize,
    /// Index of the next piece to read.
    next: usize,
}

impl EventLists {
    /// Creates the lists in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
            lists: vec![],
        })
    }

    /// Adds an event at the end of the list of its location.
    #[inline]
    pub(super) fn put(
        &mut self,
        location: LocationId,
        event: &SurveyedEvent,
    ) -> Result<(), FileError> {
        if self.lists.len() <= location.index() {
            self.lists
                .resize_with(location.index() + 1, EventList::default);
        }
        let list = &mut self.lists[location.index()];
        list.codec.put_surveyed(event, &mut list.bytes);
        if list.bytes.len() >= LOCATION_CHUNK {
            list.pieces.push(self.spill.append(&list.bytes)?);
            list.bytes.clear();
        }
        Ok(())
    }

    /// Ends writing; all lists are then read from their beginnings.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        for list in &mut self.lists {
            if !list.bytes.is_empty() {
                list.pieces.push(self.spill.append(&list.bytes)?);
            }
            list.bytes = vec![];
            list.codec = EventCodec::default();
        }
        Ok(())
    }

    /// Returns the next event of a location.
    #[inline]
    pub(super) fn next(
        &mut self,
        location: LocationId,
    ) -> Result<Option<SurveyedEvent>, FileError> {
        let Some(list) = self.lists.get_mut(location.index()) else {
            return Ok(None);
        };
        if list.at == list.bytes.len() {
            let Some(piece) = list.pieces.get(list.next) else {
                list.bytes = vec![];
                list.at = 0;
                return Ok(None);
            };
            self.spill.read(*piece, &mut list.bytes)?;
            list.next += 1;
            list.at = 0;
        }
        let mut rest = &list.bytes[list.at..];
        let event = list.codec.take_surveyed(location, &mut rest);
        list.at = list.bytes.len() - rest.len();
        event.map(Some).ok_or_else(|| self.spill.damaged())
    }
}

/// Sequence of events, which is read in either direction.
#[derive(Debug)]
pub(super) struct EventSequence {
    spill: Spill,
    pieces: Vec<Piece>,
    codec: EventCodec,
    bytes: Vec<u8>,
}

/// Event and its time.
pub(super) type Timed = (Linked, Timestamp<Global>);

impl EventSequence {
    /// Creates the sequence in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
            pieces: vec![],
            codec: EventCodec::default(),
            bytes: Vec::with_capacity(CHUNK),
        })
    }

    #[inline]
    pub(super) fn put(&mut self, (event, time): Timed) -> Result<(), FileError> {
        self.codec.put_linked(event, time, &mut self.bytes);
        if self.bytes.len() >= CHUNK {
            self.end_piece()?;
        }
        Ok(())
    }

    fn end_piece(&mut self) -> Result<(), FileError> {
        self.pieces.push(self.spill.append(&self.bytes)?);
        self.bytes.clear();
        // Every piece can be read on its own.
        self.codec = EventCodec::default();
        Ok(())
    }

    /// Ends writing.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        self.end_piece()?;
        self.bytes = vec![];
        Ok(())
    }

    /// Passes all events to `see`.
    pub(super) fn each<E: From<FileError>>(
        &self,
        mut see: impl FnMut(Timed) -> Result<(), E>,
    ) -> Result<(), E> {
        let (spill, mut bytes) = (&self.spill, vec![]);
        for piece in &self.pieces {
            spill.read(*piece, &mut bytes)?;
            let (mut codec, mut rest) = (EventCodec::default(), &bytes[..]);
            while !rest.is_empty() {
                let event = codec.take_linked(&mut rest);
                see(event.ok_or_else(|| spill.damaged())?)?;
            }
        }
        Ok(())
    }

    /// Passes all events to `see`, from the last to the first.
    pub(super) fn each_reversed<E: From<FileError>>(
        &self,
        mut see: impl FnMut(Linked) -> Result<(), E>,
    ) -> Result<(), E> {
        let (spill, mut bytes, mut events) = (&self.spill, vec![], vec![]);
        for piece in self.pieces.iter().rev() {
            spill.read(*piece, &mut bytes)?;
            let (mut codec, mut rest) = (EventCodec::default(), &bytes[..]);
            events.clear();
            while !rest.is_empty() {
                let event = codec.take_linked(&mut rest);
                events.push(event.ok_or_else(|| spill.damaged())?.0);
            }
            events.iter().rev().try_for_each(|event| see(*event))?;
        }
        Ok(())
    }
}

/// Stack of numbers: the last one comes back first.
#[derive(Debug)]
pub(super) struct Stack {
    spill: Spill,
    /// Pieces of equal length.
    pieces: Vec<Piece>,
    top: Vec<u64>,
    bytes: Vec<u8>,
}

/// Number of numbers in a piece.
const NUMBERS: usize = CHUNK / size_of::<u64>();

impl Stack {
    /// Creates a stack in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
            pieces: vec![],
            top: Vec::with_capacity(NUMBERS),
            bytes: vec![],
        })
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.spill.end = 0;
        self.top.clear();
    }

    #[inline]
    pub(super) fn push(&mut self, number: u64) -> Result<(), FileError> {
        self.top.push(number);
        if self.top.len() == NUMBERS {
            put_numbers(&self.top, &mut self.bytes);
            self.pieces.push(self.spill.append(&self.bytes)?);
            self.top.clear();
        }
        Ok(())
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Result<Option<u64>, FileError> {
        if self.top.is_empty()
            && let Some(piece) = self.pieces.pop()
        {
            self.spill.read(piece, &mut self.bytes)?;
            self.top.extend(numbers(&self.bytes));
        }
        Ok(self.top.pop())
    }
}

fn put_numbers(numbers: &[u64], to: &mut Vec<u8>) {
    to.clear();
    to.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn numbers(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u64> {
    let all = bytes.as_chunks().0.iter();
    all.map(|bytes| u64::from_le_bytes(*bytes))
}

/// Lists of times, one for each location, which are filled from their ends to their beginnings.
#[derive(Debug)]
pub(super) struct TimeLists {
    spill: Spill,
    lists: Vec<TimeList>,
}

#[derive(Debug, Default)]
struct TimeList {
    /// Pieces from the last to the first.
    pieces: Vec<Piece>,
    /// Times that are not written, from the last to the first.
    times: Vec<u64>,
    count: u64,
}

/// Number of times in a piece.
const TIMES: usize = LOCATION_CHUNK / size_of::<u64>();

impl TimeLists {
    /// Creates lists for this number of locations in the folder of `path`.
    pub(super) fn new(path: &Path, locations: usize) -> Result<Self, FileError> {
        let mut lists = vec![];
        lists.resize_with(locations, TimeList::default);
        Ok(Self {
            spill: Spill::new(path)?,
            lists,
        })
    }

    /// Adds a time at the beginning of a list.
    #[inline]
    pub(super) fn put(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
    ) -> Result<(), FileError> {
        let list = &mut self.lists[location.index()];
        list.times.push(time.as_nanos() as u64);
        list.count += 1;
        if list.times.len() == TIMES {
            Self::end_piece(&mut self.spill, list)?;
        }
        Ok(())
    }

    fn end_piece(spill: &mut Spill, list: &mut TimeList) -> Result<(), FileError> {
        list.times.reverse();
        let bytes: Vec<u8> = list
            .times
            .iter()
            .flat_map(|time| time.to_le_bytes())
            .collect();
        list.pieces.push(spill.append(&bytes)?);
        list.times.clear();
        Ok(())
    }

    /// Ends writing.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        for list in &mut self.lists {
            Self::end_piece(&mut self.spill, list)?;
            list.times = vec![];
            list.pieces.reverse();
        }
        Ok(())
    }

    /// Returns the number of times of a location.
    pub(super) fn count(&self, location: LocationId) -> u64 {
        self.lists[location.index()].count
    }

    /// Reads a piece of a list. Returns false after the last one.
    fn piece(
        &self,
        location: LocationId,
        number: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<bool, FileError> {
        match self.lists[location.index()].pieces.get(number) {
            Some(piece) => self.spill.read(*piece, bytes).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Position in a list of times.
#[derive(Debug)]
pub(super) struct TimeCursor {
    location: LocationId,
    bytes: Vec<u8>,
    at: usize,
    next: usize,
}

impl TimeCursor {
    /// Returns the beginning of the list of a location.
    pub(super) const fn new(location: LocationId) -> Self {
        Self {
            location,
            bytes: vec![],
            at: 0,
            next: 0,
        }
    }

    /// Returns the beginnings of the lists of all locations.
    pub(super) fn all(locations: impl Iterator<Item = LocationId>) -> Vec<Self> {
        locations.map(Self::new).collect()
    }

    /// Returns the next time; `None` after the last.
    #[inline]
    pub(super) fn next(
        &mut self,
        lists: &TimeLists,
    ) -> Result<Option<Timestamp<Global>>, FileError> {
        while self.at == self.bytes.len() {
            if !lists.piece(self.location, self.next, &mut self.bytes)? {
                return Ok(None);
            }
            (self.at, self.next) = (0, self.next + 1);
        }
        let time = self.bytes[self.at..].first_chunk().copied();
        self.at += size_of::<u64>();
        Ok(time.map(|time| Timestamp::from_nanos(i64::from_le_bytes(time))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::Folder;

    #[test]
    fn spilled_numbers_come_back_and_leave_no_files() {
        let (folder, path) = Folder::with("a", b"");
        let mut stack = Stack::new(&path).unwrap();
        let many = 3 * NUMBERS as u64 + 5;
        for round in 0..2 {
            (0..many).for_each(|number| stack.push(number + round).unwrap());
            let back = std::iter::from_fn(|| stack.pop().unwrap());
            assert!(back.eq((0..many).rev().map(|number| number + round)));
            (0..many).for_each(|number| stack.push(number).unwrap());
            stack.clear();
        }
        assert_eq!(stack.pop().unwrap(), None);
        // The files have no name, so that nothing remains after a crash.
        let names = || fs::read_dir(&folder.0).unwrap().count();
        assert_eq!(names(), if cfg!(unix) { 1 } else { 2 });
        drop(stack);
        assert_eq!(names(), 1);
    }

    #[test]
    fn times_come_back_in_order() {
        let (_folder, path) = Folder::with("a", b"");
        let counts = [0, 1, TIMES as i64, 3 * TIMES as i64 + 5];
        let mut lists = TimeLists::new(&path, counts.len()).unwrap();
        let location = |number: usize| LocationId(number as u32);
        for time in (0..counts[3]).rev() {
            for (number, _) in counts
                .iter()
                .enumerate()
                .filter(|(_, count)| time < **count)
            {
                lists
                    .put(location(number), Timestamp::from_nanos(time - 7))
                    .unwrap();
            }
        }
        lists.finish().unwrap();
        let mut cursors = TimeCursor::all((0..counts.len()).map(location));
        for (number, count) in counts.iter().enumerate() {
            assert_eq!(lists.count(location(number)), *count as u64);
            let back = std::iter::from_fn(|| cursors[number].next(&lists).unwrap());
            assert!(back.map(Timestamp::as_nanos).eq(-7..count - 7));
        }
    }
}
