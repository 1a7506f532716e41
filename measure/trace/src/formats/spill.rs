//! Data that do not fit in memory, in temporary files without a name, which are deleted when they are
//! closed.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::LocationId;
use crate::streaming::{EventCodec, Linked, SurveyedEvent};
use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::FileError;
use downbeat_files::create_beside;

/// Number of bytes that are written or read at once for each location.
const LOCATION_CHUNK: usize = 8 << 10;
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

/// Lists of encoded values, which are filled and read from their beginnings.
#[derive(Debug)]
pub(super) struct ByteLists {
    spill: Spill,
    lists: Vec<ByteList>,
}

#[derive(Debug, Default)]
struct ByteList {
    pieces: Vec<Piece>,
    /// Values that are not written.
    bytes: Vec<u8>,
}

impl ByteLists {
    /// Creates lists in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
            lists: vec![],
        })
    }

    /// Adds a value to a list, which `encode` appends to its bytes.
    #[inline]
    pub(super) fn put(
        &mut self,
        list: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FileError> {
        if self.lists.len() <= list {
            self.lists.resize_with(list + 1, ByteList::default);
        }
        let list = &mut self.lists[list];
        encode(&mut list.bytes);
        if list.bytes.len() >= LOCATION_CHUNK {
            list.pieces.push(self.spill.append(&list.bytes)?);
            list.bytes.clear();
        }
        Ok(())
    }

    /// Ends writing.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        for list in &mut self.lists {
            if !list.bytes.is_empty() {
                list.pieces.push(self.spill.append(&list.bytes)?);
            }
            list.bytes = vec![];
        }
        Ok(())
    }
}

/// Position in one of the lists.
#[derive(Debug, Default)]
pub(super) struct ByteCursor {
    bytes: Vec<u8>,
    at: usize,
    next: usize,
}

impl ByteCursor {
    /// Returns the next value of a list, which `decode` takes from the bytes; `None` after the last.
    #[inline]
    pub(super) fn next<T>(
        &mut self,
        lists: &ByteLists,
        list: usize,
        decode: impl FnOnce(&mut &[u8]) -> Option<T>,
    ) -> Result<Option<T>, FileError> {
        if self.at == self.bytes.len() {
            let pieces = lists.lists.get(list).map_or(&[][..], |list| &list.pieces);
            let Some(piece) = pieces.get(self.next) else {
                *self = Self {
                    next: self.next,
                    ..Self::default()
                };
                return Ok(None);
            };
            lists.spill.read(*piece, &mut self.bytes)?;
            (self.at, self.next) = (0, self.next + 1);
        }
        let mut rest = &self.bytes[self.at..];
        let value = decode(&mut rest);
        self.at = self.bytes.len() - rest.len();
        value.map(Some).ok_or_else(|| lists.spill.damaged())
    }
}

/// Lists of events, one for each location.
#[derive(Debug)]
pub(super) struct EventLists {
    lists: ByteLists,
    ends: Vec<(EventCodec, ByteCursor)>,
}

impl EventLists {
    /// Creates the lists in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            lists: ByteLists::new(path)?,
            ends: vec![],
        })
    }

    /// Adds an event at the end of the list of its location.
    #[inline]
    pub(super) fn put(
        &mut self,
        location: LocationId,
        event: &SurveyedEvent,
    ) -> Result<(), FileError> {
        if self.ends.len() <= location.index() {
            self.ends
                .resize_with(location.index() + 1, Default::default);
        }
        let codec = &mut self.ends[location.index()].0;
        self.lists
            .put(location.index(), |bytes| codec.put_surveyed(event, bytes))
    }

    /// Ends writing; all lists are then read from their beginnings.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        self.ends.fill_with(Default::default);
        self.lists.finish()
    }

    /// Returns the next event of a location.
    #[inline]
    pub(super) fn next(
        &mut self,
        location: LocationId,
    ) -> Result<Option<SurveyedEvent>, FileError> {
        let Some((codec, cursor)) = self.ends.get_mut(location.index()) else {
            return Ok(None);
        };
        cursor.next(&self.lists, location.index(), |from| {
            codec.take_surveyed(location, from)
        })
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
        let mut bytes = vec![];
        let mut pieces = self.pieces.iter();
        pieces.try_for_each(|piece| self.each_of(*piece, &mut bytes, &mut see))
    }

    /// Passes all events to `see`, from the last to the first.
    pub(super) fn each_reversed<E: From<FileError>>(
        &self,
        mut see: impl FnMut(Linked) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut bytes, mut events) = (vec![], vec![]);
        for piece in self.pieces.iter().rev() {
            events.clear();
            self.each_of(*piece, &mut bytes, |(event, _)| {
                events.push(event);
                Ok::<_, E>(())
            })?;
            events.iter().rev().try_for_each(|event| see(*event))?;
        }
        Ok(())
    }

    /// Passes the events of a piece to `see`.
    #[inline]
    fn each_of<E: From<FileError>>(
        &self,
        piece: Piece,
        bytes: &mut Vec<u8>,
        mut see: impl FnMut(Timed) -> Result<(), E>,
    ) -> Result<(), E> {
        self.spill.read(piece, bytes)?;
        let (mut codec, mut rest) = (EventCodec::default(), &bytes[..]);
        while !rest.is_empty() {
            let event = codec.take_linked(&mut rest);
            see(event.ok_or_else(|| self.spill.damaged())?)?;
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

/// Queue of numbers: they come back in their order, after all were added.
#[derive(Debug)]
pub(super) struct Queue {
    spill: Spill,
    pieces: VecDeque<Piece>,
    /// Last numbers that were added.
    end: Vec<u64>,
    /// First numbers to come back, in reverse.
    front: Vec<u64>,
    bytes: Vec<u8>,
}

impl Queue {
    /// Creates a queue in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
            pieces: VecDeque::new(),
            end: Vec::with_capacity(NUMBERS),
            front: vec![],
            bytes: vec![],
        })
    }

    #[inline]
    pub(super) fn push(&mut self, number: u64) -> Result<(), FileError> {
        self.end.push(number);
        if self.end.len() == NUMBERS {
            put_numbers(&self.end, &mut self.bytes);
            self.pieces.push_back(self.spill.append(&self.bytes)?);
            self.end.clear();
        }
        Ok(())
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<u64>, FileError> {
        if self.front.is_empty() {
            match self.pieces.pop_front() {
                Some(piece) => {
                    self.spill.read(piece, &mut self.bytes)?;
                    self.front.extend(numbers(&self.bytes).rev());
                }
                None => self.front.extend(self.end.drain(..).rev()),
            }
        }
        Ok(self.front.pop())
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

/// Lists of numbers, one for each location, which are filled from their ends to their beginnings.
#[derive(Debug)]
pub(super) struct NumberLists {
    spill: Spill,
    lists: Vec<NumberList>,
}

#[derive(Debug, Default)]
struct NumberList {
    /// Pieces from the last to the first.
    pieces: Vec<Piece>,
    /// Numbers that are not written, from the last to the first.
    numbers: Vec<u64>,
    count: u64,
}

/// Number of numbers in a piece.
const OF_LOCATION: usize = LOCATION_CHUNK / size_of::<u64>();

impl NumberLists {
    /// Creates lists for this number of locations in the folder of `path`.
    pub(super) fn new(path: &Path, locations: usize) -> Result<Self, FileError> {
        let mut lists = vec![];
        lists.resize_with(locations, NumberList::default);
        Ok(Self {
            spill: Spill::new(path)?,
            lists,
        })
    }

    /// Adds a number at the beginning of a list.
    #[inline]
    pub(super) fn put(&mut self, location: LocationId, number: i64) -> Result<(), FileError> {
        let list = &mut self.lists[location.index()];
        list.numbers.push(number as u64);
        list.count += 1;
        if list.numbers.len() == OF_LOCATION {
            list.end_piece(&mut self.spill)?;
        }
        Ok(())
    }

    /// Ends writing.
    pub(super) fn finish(&mut self) -> Result<(), FileError> {
        for list in &mut self.lists {
            list.end_piece(&mut self.spill)?;
            list.numbers = vec![];
            list.pieces.reverse();
        }
        Ok(())
    }

    /// Returns the number of numbers of a location.
    pub(super) fn count(&self, location: LocationId) -> u64 {
        self.lists[location.index()].count
    }
}

impl NumberList {
    fn end_piece(&mut self, spill: &mut Spill) -> Result<(), FileError> {
        self.numbers.reverse();
        let mut bytes = vec![];
        put_numbers(&self.numbers, &mut bytes);
        self.pieces.push(spill.append(&bytes)?);
        self.numbers.clear();
        Ok(())
    }
}

/// Position in a list of numbers.
#[derive(Debug)]
pub(super) struct NumberCursor {
    location: LocationId,
    bytes: Vec<u8>,
    at: usize,
    next: usize,
}

impl NumberCursor {
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

    /// Returns the next number; `None` after the last.
    #[inline]
    pub(super) fn next(&mut self, lists: &NumberLists) -> Result<Option<i64>, FileError> {
        while self.at == self.bytes.len() {
            let pieces = &lists.lists[self.location.index()].pieces;
            let Some(piece) = pieces.get(self.next) else {
                return Ok(None);
            };
            lists.spill.read(*piece, &mut self.bytes)?;
            (self.at, self.next) = (0, self.next + 1);
        }
        let number = self.bytes[self.at..].first_chunk().copied();
        self.at += size_of::<i64>();
        Ok(number.map(i64::from_le_bytes))
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
        let mut queue = Queue::new(&path).unwrap();
        (0..many).for_each(|number| queue.push(number).unwrap());
        assert!(std::iter::from_fn(|| queue.next().unwrap()).eq(0..many));
        drop(queue);
        // The files have no name, so that nothing remains after a crash.
        let names = || fs::read_dir(&folder.0).unwrap().count();
        assert_eq!(names(), if cfg!(unix) { 1 } else { 2 });
        drop(stack);
        assert_eq!(names(), 1);
    }

    #[test]
    fn numbers_come_back_in_order() {
        let (_folder, path) = Folder::with("a", b"");
        let counts = [0, 1, OF_LOCATION as i64, 3 * OF_LOCATION as i64 + 5];
        let mut lists = NumberLists::new(&path, counts.len()).unwrap();
        let location = |number: usize| LocationId(number as u32);
        for number in (0..counts[3]).rev() {
            let longer = counts.iter().enumerate();
            for (list, _) in longer.filter(|(_, count)| number < **count) {
                lists.put(location(list), number - 7).unwrap();
            }
        }
        lists.finish().unwrap();
        let mut cursors = NumberCursor::all((0..counts.len()).map(location));
        for (list, count) in counts.iter().enumerate() {
            assert_eq!(lists.count(location(list)), *count as u64);
            let back = std::iter::from_fn(|| cursors[list].next(&lists).unwrap());
            assert!(back.eq(-7..count - 7));
        }
    }
}
