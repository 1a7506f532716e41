//! Writing a trace, one thing at a time, to a file that appears when it is complete.

use std::path::Path;

use super::TraceFormat;
use super::binary::{self, WriteState};
use super::definitions::Definitions;
use super::item::Item;
use super::text;
use downbeat_files::FileError;
use downbeat_files::{CHUNK, NewFile};

/// Writes a trace, one thing at a time. The file is there when [`finish`](Self::finish) returns, and what was there
/// before is so until then.
#[derive(Debug)]
pub struct TraceWriter {
    format: TraceFormat,
    definitions: Definitions,
    state: WriteState,
    buffer: Vec<u8>,
    file: NewFile,
}

impl TraceWriter {
    /// Begins a trace that will be at `path`.
    ///
    /// # Errors
    /// When no file can be made there, or what is there is something else than a file.
    pub fn create(path: &Path, format: TraceFormat) -> Result<Self, FileError> {
        Self::create_line(path, format, false)
    }

    /// The same, with a first line that ends as on Windows.
    pub(super) fn create_line(
        path: &Path,
        format: TraceFormat,
        windows_end: bool,
    ) -> Result<Self, FileError> {
        let file = NewFile::create(path)?;
        let mut buffer = Vec::with_capacity(CHUNK);
        match format {
            TraceFormat::Text => {
                buffer.extend_from_slice(text::MAGIC.as_bytes());
                buffer.extend_from_slice(text::VERSION.as_bytes());
                end_line(&mut buffer, windows_end);
            }
            TraceFormat::Binary => {
                buffer.extend_from_slice(&binary::MAGIC);
                buffer.push(binary::VERSION);
            }
        }
        let (definitions, state) = (Definitions::default(), WriteState::default());
        Ok(Self {
            format,
            definitions,
            state,
            buffer,
            file,
        })
    }

    /// Writes what comes next.
    ///
    /// # Errors
    /// When it cannot be written, or cannot come next: it names something that there is not, say.
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        self.write_line(item, false)
    }

    /// The same, with a line end as on Windows.
    pub(super) fn write_line(
        &mut self,
        item: &Item<'_>,
        windows_end: bool,
    ) -> Result<(), FileError> {
        self.definitions.take(item).map_err(FileError::Unwritable)?;
        match self.format {
            TraceFormat::Text => {
                text::write(&mut self.buffer, item, &self.definitions);
                end_line(&mut self.buffer, windows_end);
            }
            TraceFormat::Binary => binary::write(&mut self.buffer, item, &mut self.state),
        }
        if self.buffer.len() >= CHUNK {
            self.state.written += self.buffer.len() as u64;
            self.file.write(&mut self.buffer)
        } else {
            Ok(())
        }
    }

    /// Ends the trace, and replaces what was at its place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        self.finish_line(false)
    }

    /// The same, with a line end as on Windows.
    pub(super) fn finish_line(mut self, windows_end: bool) -> Result<(), FileError> {
        match self.format {
            TraceFormat::Text => {
                text::write_end(&mut self.buffer, self.definitions.events);
                end_line(&mut self.buffer, windows_end);
            }
            TraceFormat::Binary => {
                binary::write_end(&mut self.buffer, self.definitions.events, &mut self.state);
            }
        }
        self.file.write(&mut self.buffer)?;
        self.file.finish()
    }
}

fn end_line(buffer: &mut Vec<u8>, windows_end: bool) {
    buffer.extend_from_slice(if windows_end { b"\r\n" } else { b"\n" });
}
