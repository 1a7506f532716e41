//! The events of one location, as its file has them: byte by byte, with their times.
//!
//! OTF2's own reader hands over only those that it knows, and takes several times as long.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Otf2Error;
use super::events::is_in_trace;
use super::record::{
    ATTRIBUTES, CHUNK_HEADER, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, EventRecord, HEADER, LONG,
    Order, TIMESTAMP, data,
};

/// Whether events of this kind, which are as old as OTF2, have one number and no length: the number has its own.
fn is_number(kind: u8) -> bool {
    // Enter and leave; requests; OpenMP's forks and tasks.
    matches!(kind, 12 | 13 | 16 | 17 | 20 | 21 | 24 | 28..=30)
}

/// Where the number of such an event begins, and where it ends.
fn number(bytes: &[u8], at: usize) -> Option<[usize; 2]> {
    let length = match *bytes.get(at + 1)? {
        // It stands for none.
        LONG => 0,
        length => usize::from(length),
    };
    let end = at + 2 + length;
    (end <= bytes.len()).then_some([at + 1, end])
}

/// A file of events that is read, chunk by chunk.
#[derive(Debug)]
pub(super) struct EventFile {
    path: PathBuf,
    file: File,
    /// How large chunks are.
    size: usize,
    chunk: Vec<u8>,
    at: usize,
    /// Where the chunk is in the file.
    begins: u64,
    order: Order,
    time: u64,
    /// How many there were so far.
    pub(super) events: u64,
    ended: bool,
}

impl EventFile {
    pub(super) fn open(path: &Path, size: usize) -> Result<Self, Otf2Error> {
        let file = File::open(path).map_err(Otf2Error::io(path))?;
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

    /// The order of the bytes in its numbers.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// The next event; `None` at the end.
    // To hand a record over in memory takes longer than to find it.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<EventRecord<'_>>, Otf2Error> {
        let mut start = None;
        loop {
            let at = self.at;
            match self.chunk.get(at) {
                Some(&TIMESTAMP) => {
                    let Some(time) = self.chunk[at + 1..].first_chunk() else {
                        return Err(self.cut());
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
                        return Err(self.cut());
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

    /// When the next event is that is in a trace; `None` if there is none.
    pub(super) fn next_in_trace(&mut self) -> Result<Option<u64>, Otf2Error> {
        while let Some(record) = self.next()? {
            if is_in_trace(record.kind) {
                return Ok(Some(record.time));
            }
        }
        Ok(None)
    }

    /// What is there instead of a record.
    fn end_chunk(&mut self, byte: Option<u8>) -> Result<(), Otf2Error> {
        match byte {
            Some(END_OF_FILE) => {
                self.ended = true;
                Ok(())
            }
            None | Some(END_OF_CHUNK) if self.chunk.len() == self.size => self.fill(),
            None | Some(END_OF_CHUNK | END_OF_BUFFER) => Err(self.cut()),
            Some(_) => {
                let why = format!("byte {} is no record", self.begins + self.at as u64);
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
        self.order = order.ok_or_else(|| self.cut())?;
        self.at = HEADER;
        Ok(())
    }

    fn cut(&self) -> Otf2Error {
        Otf2Error::content(&self.path, "the file is cut short, or of no OTF2 archive")
    }
}
