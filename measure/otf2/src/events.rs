//! Reader of the events of one location, chunk by chunk.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::open;
use crate::field::Field;
use crate::raw::{
    ATTRIBUTES, CHUNK_HEADER, Decoder, END, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, HEADER, LONG,
    Order, TIMESTAMP, TRUNCATED, put_record, record_range,
};
use crate::{AttributeRef, Error, Event, List, LocalDefinitions, Value};

/// Event as it is recorded, which [`event`](Self::event) decodes.
#[derive(Clone, Copy, Debug)]
pub struct EventRecord<'a> {
    /// Recorded time in ticks.
    pub time: u64,
    /// Kind of the event.
    pub kind: u8,
    /// Whole record, with that of its attributes before it.
    pub bytes: &'a [u8],
    /// Data of the record without kind and length.
    pub data: &'a [u8],
    /// Byte order of the file.
    pub order: Order,
    local: &'a LocalDefinitions,
}

impl<'a> EventRecord<'a> {
    /// Decodes the event; `None` if its data are truncated or not valid. Its references are those of
    /// the archive.
    #[inline]
    pub fn event(&self) -> Option<Event<'a>> {
        Event::decode(self.kind, self.decoder(self.data))
    }

    /// Returns the time with the offset of the clock, as OTF2's reader does.
    pub fn corrected_time(&self) -> u64 {
        self.local.corrected(self.time)
    }

    /// Decodes the attributes; `None` if they are truncated or not valid.
    pub fn attributes(&self) -> Option<Attributes<'a>> {
        if self.bytes.first() != Some(&ATTRIBUTES) {
            return Some(Attributes::default());
        }
        let [start, end] = record_range(self.bytes, 0, self.order)?;
        Field::decode(&mut self.decoder(&self.bytes[start..end]))
    }

    #[inline]
    const fn decoder(&self, data: &'a [u8]) -> Decoder<'a> {
        Decoder::mapped(data, self.order, &self.local.mappings)
    }
}

/// Attributes of an event.
pub type Attributes<'a> = List<'a, (AttributeRef, Value)>;

/// Returns true for the oldest kinds of events, which consist of one number without a length field:
/// the number has its own.
const fn is_number(kind: u8) -> bool {
    // Enter and leave; requests; OpenMP forks and tasks.
    matches!(kind, 12 | 13 | 16 | 17 | 20 | 21 | 24 | 28..=30)
}

/// Returns the range of the number of such an event.
#[inline]
fn number(bytes: &[u8], at: usize) -> Option<[usize; 2]> {
    let length = match *bytes.get(at + 1)? {
        // Code of an undefined number.
        LONG => 0,
        length => usize::from(length),
    };
    let end = at + 2 + length;
    (end <= bytes.len()).then_some([at + 1, end])
}

/// Appends the record of an event, with that of its attributes before it.
pub(crate) fn put_event(
    event: &Event<'_>,
    attributes: &Attributes<'_>,
    order: Order,
    to: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
) {
    scratch.clear();
    if !attributes.is_empty() {
        attributes.encode(order, scratch);
        put_record(ATTRIBUTES, scratch, order, to);
        scratch.clear();
    }
    let kind = event.kind();
    event.encode(order, scratch);
    if is_number(kind) {
        to.push(kind);
        to.extend_from_slice(scratch);
    } else {
        put_record(kind, scratch, order, to);
    }
}

/// Reader of the events of a location, of which one chunk is in memory at a time.
#[derive(Debug)]
pub struct EventReader<R = File> {
    path: PathBuf,
    from: R,
    /// Size of chunks.
    size: usize,
    chunk: Vec<u8>,
    at: usize,
    /// Position of the chunk in the file.
    begins: u64,
    order: Order,
    time: u64,
    /// Number of events read.
    events: u64,
    ended: bool,
    local: Arc<LocalDefinitions>,
}

impl EventReader {
    /// Opens a file of events or snapshots with chunks of this size.
    ///
    /// # Errors
    /// If the file cannot be read, or does not begin with a chunk.
    pub fn open(path: &Path, chunk: usize, local: Arc<LocalDefinitions>) -> Result<Self, Error> {
        Self::new(open(path)?, path, chunk, local)
    }
}

impl<R: Read> EventReader<R> {
    /// Begins to read a file of events or snapshots with chunks of this size; the path is for errors.
    ///
    /// # Errors
    /// If the file cannot be read, or does not begin with a chunk.
    pub fn new(
        from: R,
        path: &Path,
        chunk: usize,
        local: Arc<LocalDefinitions>,
    ) -> Result<Self, Error> {
        let mut opened = Self {
            path: path.to_owned(),
            from,
            size: chunk,
            chunk: vec![],
            at: 0,
            begins: 0,
            order: Order::Little,
            time: 0,
            events: 0,
            ended: false,
            local,
        };
        opened.fill()?;
        Ok(opened)
    }

    /// Returns the byte order of the file.
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Returns the number of events read.
    pub const fn count(&self) -> u64 {
        self.events
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, is truncated, or does not consist of records.
    // Inlined, as returning the record in memory takes longer than decoding it.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "the event borrows the reader"
    )]
    pub fn next(&mut self) -> Result<Option<EventRecord<'_>>, Error> {
        let mut start = None;
        loop {
            let at = self.at;
            match self.chunk.get(at) {
                Some(&TIMESTAMP) => {
                    let Some(time) = self.chunk[at + 1..].first_chunk() else {
                        return Err(self.truncated());
                    };
                    self.time = self.order.full(*time);
                    self.at += 1 + time.len();
                }
                Some(&kind) if kind > TIMESTAMP => {
                    let found = if is_number(kind) {
                        number(&self.chunk, at)
                    } else {
                        record_range(&self.chunk, at, self.order)
                    };
                    let Some([from, end]) = found else {
                        return Err(self.truncated());
                    };
                    self.at = end;
                    let start = *start.get_or_insert(at);
                    if kind != ATTRIBUTES {
                        self.events += 1;
                        return Ok(Some(EventRecord {
                            time: self.time,
                            kind,
                            bytes: &self.chunk[start..end],
                            data: &self.chunk[from..end],
                            order: self.order,
                            local: &self.local,
                        }));
                    }
                }
                _ if self.ended => return Ok(None),
                end => {
                    let end = end.copied();
                    self.end_chunk(end)?;
                }
            }
        }
    }

    /// Handles a byte that does not begin a record.
    fn end_chunk(&mut self, byte: Option<u8>) -> Result<(), Error> {
        match byte {
            Some(END_OF_FILE) => {
                self.ended = true;
                self.check_end()
            }
            None | Some(END_OF_CHUNK) if self.chunk.len() == self.size => self.fill(),
            None | Some(END_OF_CHUNK | END_OF_BUFFER) => Err(self.truncated()),
            Some(_) => {
                let at = self.begins + self.at as u64;
                let why = format!("byte {at} does not begin a record");
                Err(Error::content(&self.path, why))
            }
        }
    }

    /// Checks that nothing follows the end of the file, and that nothing of it is missing.
    fn check_end(&mut self) -> Result<(), Error> {
        let mut rest = self.chunk[self.at..].to_vec();
        let mut others = (&mut self.from).take(1);
        let read = others.read_to_end(&mut rest);
        read.map_err(Error::io(&self.path))?;
        match rest.strip_prefix(&END) {
            Some([]) => Ok(()),
            Some(_) => Err(Error::content(
                &self.path,
                "bytes follow the end of the file",
            )),
            None => Err(self.truncated()),
        }
    }

    /// Reads the next chunk.
    fn fill(&mut self) -> Result<(), Error> {
        self.begins += self.chunk.len() as u64;
        self.chunk.clear();
        let mut chunk = (&mut self.from).take(self.size as u64);
        let read = chunk.read_to_end(&mut self.chunk);
        read.map_err(Error::io(&self.path))?;
        let order = match self.chunk[..] {
            [CHUNK_HEADER, order, ..] if self.chunk.len() > HEADER => Order::from_byte(order),
            _ => None,
        };
        self.order = order.ok_or_else(|| self.truncated())?;
        self.at = HEADER;
        Ok(())
    }

    fn truncated(&self) -> Error {
        Error::content(&self.path, TRUNCATED)
    }
}
