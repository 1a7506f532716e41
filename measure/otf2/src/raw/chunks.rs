//! Writer of files, which consist of chunks of one size, except for the last one. Each chunk is a
//! header and records.

use std::io::{self, Write};

use super::{CHUNK_HEADER, END, END_OF_CHUNK, HEADER, Order, TIMESTAMP};

/// Writer of a file of definitions or of events.
#[derive(Debug)]
pub struct RecordWriter<W> {
    to: W,
    /// Current chunk.
    chunk: Vec<u8>,
    /// Size of each chunk.
    size: usize,
    order: Order,
    /// Number of events written.
    events: u64,
    /// Timestamp in force in this chunk.
    time: Option<u64>,
}

impl<W: Write> RecordWriter<W> {
    /// Begins a file of chunks of this size in bytes.
    pub fn new(to: W, size: usize, order: Order) -> Self {
        let mut chunks = Self {
            to,
            chunk: Vec::with_capacity(size),
            size,
            order,
            events: 0,
            time: None,
        };
        chunks.begin();
        chunks
    }

    fn begin(&mut self) {
        self.chunk.extend([CHUNK_HEADER, self.order as u8]);
        // The number of its last event is set when the chunk is complete.
        self.chunk.extend(
            [self.events + 1, 0]
                .map(|number| self.order.bytes(number))
                .as_flattened(),
        );
        self.time = None;
    }

    fn write(&mut self) -> io::Result<()> {
        let last = self.order.bytes(self.events);
        self.chunk[HEADER - last.len()..HEADER].copy_from_slice(&last);
        self.to.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Begins a new chunk if this number of bytes does not fit in the current one.
    fn make_room(&mut self, bytes: usize) -> io::Result<()> {
        if self.chunk.len() + bytes + END.len() <= self.size {
            return Ok(());
        }
        if HEADER + bytes + END.len() > self.size {
            return Err(io::Error::other(format!(
                "a record of {bytes} bytes is larger than a chunk"
            )));
        }
        self.chunk.resize(self.size, END_OF_CHUNK);
        self.write()?;
        self.begin();
        Ok(())
    }

    /// Adds a definition, which is a whole record.
    ///
    /// # Errors
    /// If the file cannot be written, or a chunk is smaller than the record.
    pub fn add(&mut self, record: &[u8]) -> io::Result<()> {
        self.make_room(record.len())?;
        self.chunk.extend_from_slice(record);
        Ok(())
    }

    /// Adds an event: a whole record, with that of its attributes before it.
    ///
    /// # Errors
    /// If the file cannot be written, or a chunk is smaller than the record.
    pub fn add_event(&mut self, time: u64, record: &[u8]) -> io::Result<()> {
        // Every chunk begins with a timestamp.
        self.make_room(1 + size_of_val(&time) + record.len())?;
        if self.time != Some(time) {
            self.chunk.push(TIMESTAMP);
            self.chunk.extend(self.order.bytes(time));
            self.time = Some(time);
        }
        self.chunk.extend_from_slice(record);
        self.events += 1;
        Ok(())
    }

    /// Returns the number of events written.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.chunk.extend(END);
        self.write()?;
        Ok(self.to)
    }
}
