//! Decoder of event files, which returns the events of one location with their times as raw bytes.
//!
//! OTF2's own reader only returns kinds of events that it knows, and takes several times as long.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Otf2Error;
use super::error::open;
use super::record::{
    ATTRIBUTES, CHUNK_HEADER, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, EventRecord, HEADER, LONG,
    Order, TIMESTAMP, TRUNCATED, data,
};

/// Returns true for the oldest kinds of events, which consist of one number without a length field:
/// the number has its own.
fn is_number(kind: u8) -> bool {
    // Enter and leave; requests; OpenMP forks and tasks.
    matches!(kind, 12 | 13 | 16 | 17 | 20 | 21 | 24 | 28..=30)
}

/// Returns the range of the number of such an event.
fn number(bytes: &[u8], at: usize) -> Option<[usize; 2]> {
    let length = match *bytes.get(at + 1)? {
        // Code of an undefined number.
        LONG => 0,
        length => usize::from(length),
    };
    let end = at + 2 + length;
    (end <= bytes.len()).then_some([at + 1, end])
}

/// Event file that is read chunk by chunk.
#[derive(Debug)]
pub(super) struct EventFile {
    path: PathBuf,
    file: File,
    /// Size of chunks.
    size: usize,
    chunk: Vec<u8>,
    at: usize,
    /// Position of the chunk in the file.
    begins: u64,
    order: Order,
    time: u64,
    /// Number of events read.
    pub(super) events: u64,
    ended: bool,
}

impl EventFile {
    pub(super) fn open(path: &Path, size: usize) -> Result<Self, Otf2Error> {
        let file = open(path)?;
        let chunk = Vec::with_capacity(size);
        let path = path.to_owned();
        let order = Order::Little;
        let mut opened = Self {
            path,
            file,
            size,
            chunk,
            at: 0,
            begins: 0,
            order,
            time: 0,
            events: 0,
            ended: false,
        };
        opened.fill()?;
        Ok(opened)
    }

    /// Returns the byte order of the file.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Returns the next event; `None` at the end.
    // Inlined, as returning the record in memory takes longer than decoding it.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<EventRecord<'_>>, Otf2Error> {
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
                        data(&self.chunk, at, self.order)
                    };
                    let Some([from, end]) = found else {
                        return Err(self.truncated());
                    };
                    self.at = end;
                    let start = *start.get_or_insert(at);
                    if kind != ATTRIBUTES {
                        self.events += 1;
                        let (bytes, data) = (&self.chunk[start..end], &self.chunk[from..end]);
                        return Ok(Some(EventRecord {
                            time: self.time,
                            kind,
                            bytes,
                            data,
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

    /// Returns the time of the next event; `None` if there is none.
    pub(super) fn next_time(&mut self) -> Result<Option<u64>, Otf2Error> {
        Ok(self.next()?.map(|record| record.time))
    }

    /// Handles a byte that does not begin a record.
    fn end_chunk(&mut self, byte: Option<u8>) -> Result<(), Otf2Error> {
        match byte {
            Some(END_OF_FILE) => {
                self.ended = true;
                Ok(())
            }
            None | Some(END_OF_CHUNK) if self.chunk.len() == self.size => self.fill(),
            None | Some(END_OF_CHUNK | END_OF_BUFFER) => Err(self.truncated()),
            Some(_) => {
                let why = format!(
                    "byte {} does not begin a record",
                    self.begins + self.at as u64
                );
                Err(Otf2Error::content(&self.path, why))
            }
        }
    }

    /// Reads the next chunk.
    fn fill(&mut self) -> Result<(), Otf2Error> {
        self.begins += self.chunk.len() as u64;
        self.chunk.clear();
        let read: io::Result<usize> = (&self.file)
            .take(self.size as u64)
            .read_to_end(&mut self.chunk);
        read.map_err(Otf2Error::io(&self.path))?;
        let order = match self.chunk[..] {
            [CHUNK_HEADER, order, ..] if self.chunk.len() > HEADER => Order::from_byte(order),
            _ => None,
        };
        self.order = order.ok_or_else(|| self.truncated())?;
        self.at = HEADER;
        Ok(())
    }

    fn truncated(&self) -> Otf2Error {
        Otf2Error::content(&self.path, TRUNCATED)
    }
}
