//! Writing a trace, one thing at a time, to a file that appears when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::TraceFormat;
use super::beside;
use super::binary::{self, State};
use super::definitions::Definitions;
use super::item::Item;
use super::text;
use crate::records::RecordError;

/// So much is written at once.
const CHUNK: usize = 256 << 10;

/// Writes a trace, one thing at a time. The file is there when [`finish`](Self::finish) returns, and what was there
/// before is so until then.
#[derive(Debug)]
pub struct TraceWriter {
    format: TraceFormat,
    definitions: Definitions,
    state: State,
    buffer: Vec<u8>,
    file: File,
    /// Where the trace is to be.
    path: PathBuf,
    /// Where it is before it is complete.
    beside: PathBuf,
    finished: bool,
}

impl TraceWriter {
    /// Begins a trace that will be at `path`.
    ///
    /// # Errors
    /// When no file can be made there, or what is there is something else than a file.
    pub fn create(path: &Path, format: TraceFormat) -> Result<Self, RecordError> {
        Self::create_line(path, format, false)
    }

    /// The same, with a first line that ends as on Windows.
    pub(super) fn create_line(path: &Path, format: TraceFormat, windows_end: bool) -> Result<Self, RecordError> {
        let path = place(path)?;
        let create = |beside: &Path| OpenOptions::new().write(true).create_new(true).open(beside);
        let (beside, file) = beside::create(&path, create).map_err(RecordError::io(&path))?;
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
        let (definitions, state) = (Definitions::default(), State::default());
        Ok(Self { format, definitions, state, buffer, file, path, beside, finished: false })
    }

    /// Writes what comes next.
    ///
    /// # Errors
    /// When it cannot be written, or cannot come next: it names something that there is not, say.
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), RecordError> {
        self.write_line(item, false)
    }

    /// The same, with a line end as on Windows.
    pub(super) fn write_line(&mut self, item: &Item<'_>, windows_end: bool) -> Result<(), RecordError> {
        self.definitions.take(item).map_err(RecordError::Unwritable)?;
        match self.format {
            TraceFormat::Text => {
                text::write(&mut self.buffer, item, &self.definitions);
                end_line(&mut self.buffer, windows_end);
            }
            TraceFormat::Binary => binary::write(&mut self.buffer, item, &mut self.state),
        }
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        self.file.write_all(&self.buffer).map_err(RecordError::io(&self.path))?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the trace, and replaces what was at its place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        self.finish_line(false)
    }

    /// The same, with a line end as on Windows.
    pub(super) fn finish_line(mut self, windows_end: bool) -> Result<(), RecordError> {
        match self.format {
            TraceFormat::Text => {
                text::write_end(&mut self.buffer, self.definitions.events);
                end_line(&mut self.buffer, windows_end);
            }
            TraceFormat::Binary => binary::write_end(&mut self.buffer, self.definitions.events),
        }
        self.flush()?;
        self.file
            .sync_all()
            .and_then(|()| fs::rename(&self.beside, &self.path))
            .map_err(RecordError::io(&self.path))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if !self.finished {
            // There is nobody to tell.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

fn end_line(buffer: &mut Vec<u8>, windows_end: bool) {
    buffer.extend_from_slice(if windows_end { b"\r\n" } else { b"\n" });
}

/// Where a file is to be: if there is a link, where it leads to.
fn place(path: &Path) -> Result<PathBuf, RecordError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(RecordError::content(path, "it is not a file")),
        // A folder that must not be written to does not make the file writable.
        Ok(found) if found.permissions().readonly() => Err(RecordError::content(path, "it must not be written to")),
        Ok(_) => fs::canonicalize(path).map_err(RecordError::io(path)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(why) => Err(RecordError::Io { path: path.to_owned(), why }),
    }
}
