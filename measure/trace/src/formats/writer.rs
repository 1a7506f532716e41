//! Item-by-item writer of traces, to a file that appears when it is complete.

use std::path::Path;

use super::definitions::FileDefinitions;
use super::item::Item;
use super::text;
use crate::Event;
use downbeat_files::{CHUNK, Crc32, FileError, NewFile};

/// Writes a trace item by item. The file appears when [`finish`](Self::finish) returns; until then,
/// an earlier file of the same name is unchanged.
#[derive(Debug)]
pub struct TraceWriter {
    definitions: FileDefinitions,
    /// Checksum of what was written.
    checksum: Crc32,
    buffer: Vec<u8>,
    file: NewFile,
}

impl TraceWriter {
    /// Begins a trace that will be at `path`.
    ///
    /// # Errors
    /// If no file can be created there, or something other than a regular file is there.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        Self::create_line(path, false)
    }

    /// Begins a trace whose first line ends with CR LF on request.
    pub(super) fn create_line(path: &Path, windows_end: bool) -> Result<Self, FileError> {
        let file = NewFile::create(path)?;
        let mut buffer = Vec::with_capacity(CHUNK);
        buffer.extend_from_slice(text::MAGIC.as_bytes());
        buffer.extend_from_slice(text::VERSION.as_bytes());
        end_line(&mut buffer, windows_end);
        Ok(Self {
            definitions: FileDefinitions::default(),
            checksum: Crc32::default(),
            buffer,
            file,
        })
    }

    /// Writes the next item.
    ///
    /// # Errors
    /// If it cannot be written, or is not valid here, for example because it refers to something
    /// undefined.
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        self.write_line(item, false)
    }

    /// Writes the next item, with CR LF as its line end on request.
    pub(super) fn write_line(
        &mut self,
        item: &Item<'_>,
        windows_end: bool,
    ) -> Result<(), FileError> {
        if let Item::Metric { .. }
        | Item::Event {
            event: Event::Metric { .. },
            ..
        } = item
        {
            let why = "this format has no metrics".to_owned();
            return Err(FileError::Unwritable(why));
        }
        self.definitions.take(item).map_err(FileError::Unwritable)?;
        text::write(&mut self.buffer, item, &self.definitions);
        end_line(&mut self.buffer, windows_end);
        if self.buffer.len() >= CHUNK {
            self.checksum.add(&self.buffer);
            self.file.write(&mut self.buffer)
        } else {
            Ok(())
        }
    }

    /// Ends the trace, and moves the file to its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        self.end_lines(false)?.finish()
    }

    /// Ends the trace, with CR LF as its last line ends on request.
    pub(super) fn end_lines(mut self, windows_end: bool) -> Result<NewFile, FileError> {
        text::write_end(&mut self.buffer, self.definitions.events);
        end_line(&mut self.buffer, windows_end);
        self.checksum.add(&self.buffer);
        let checksum = text::CHECKSUM.line_of(self.checksum.value());
        self.buffer.extend(checksum.bytes());
        end_line(&mut self.buffer, windows_end);
        self.file.write(&mut self.buffer)?;
        Ok(self.file)
    }
}

fn end_line(buffer: &mut Vec<u8>, windows_end: bool) {
    buffer.extend_from_slice(if windows_end { b"\r\n" } else { b"\n" });
}
