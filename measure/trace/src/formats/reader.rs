//! Item-by-item reader of traces.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::definitions::FileDefinitions;
use super::item::Item;
use super::text;
use downbeat_files::{AFTER_END, Checksums, Lines, open, shown};
use downbeat_files::{FileError, Flaw};

/// Reads a trace item by item. Only one line of the file is in memory at a time.
///
/// Every item is checked by itself: numbers refer to earlier definitions, and the number of events
/// is that at the end of the file. A [`TraceBuilder`](crate::TraceBuilder) checks whether events of
/// several locations match.
#[derive(Debug)]
pub struct TraceReader<R = File> {
    path: PathBuf,
    lines: Lines<R>,
    /// Members of the last communicator.
    members: Vec<u32>,
    /// True if the last line is a checksum.
    has_checksum: bool,
    definitions: FileDefinitions,
    checksums: Checksums,
    ended: bool,
}

impl TraceReader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or is not a trace.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::new(path, open(path)?)
    }
}

impl<R: Read> TraceReader<R> {
    /// Reads from any source; `path` is its name in errors.
    ///
    /// # Errors
    /// As [`open`](TraceReader::open).
    pub fn new(path: &Path, reader: R) -> Result<Self, FileError> {
        let mut lines = Lines::new(reader, text::LONGEST_LINE);
        let has_checksum = check_first_line(&mut lines).map_err(|flaw| flaw.in_file(path))?;
        Ok(Self {
            path: path.to_owned(),
            lines,
            members: vec![],
            has_checksum,
            definitions: FileDefinitions::default(),
            checksums: Checksums::default(),
            ended: false,
        })
    }

    /// Treats checksums in this way; without this call, they are verified.
    #[must_use]
    pub fn with_checksums(mut self, checksums: Checksums) -> Self {
        self.checksums = checksums;
        self
    }

    /// Returns the next item; `None` at the end of the trace.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a valid trace. The reader cannot be used any more
    /// then.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, FileError> {
        Ok(self.next_line()?.map(|(item, _)| item))
    }

    /// Returns the next item, and true if its line ends with CR LF.
    #[inline]
    pub(super) fn next_line(&mut self) -> Result<Option<(Item<'_>, bool)>, FileError> {
        if self.ended {
            return Ok(None);
        }
        let checksums = self.has_checksum.then_some(self.checksums);
        let (definitions, ended) = (&mut self.definitions, &mut self.ended);
        next_line(
            &mut self.lines,
            &mut self.members,
            definitions,
            checksums,
            ended,
        )
        .map_err(|flaw| flaw.in_file(&self.path))
    }

    /// Returns an error at the last item.
    pub(super) fn error(&self, why: String) -> FileError {
        self.lines.flaw(0, why).in_file(&self.path)
    }

    /// Returns true if the last line that was read ends with CR LF, for example the first line or
    /// the end of the trace.
    pub(super) fn windows_end(&self) -> bool {
        self.lines.windows_end()
    }
}

/// Checks the first line; returns true if the last one is a checksum.
fn check_first_line<R: Read>(lines: &mut Lines<R>) -> Result<bool, Flaw> {
    let first = lines.next_line().ok().flatten().map(<[u8]>::to_vec);
    let first = first.unwrap_or_default();
    match first.strip_prefix(text::MAGIC.as_bytes()) {
        Some(version) if version == text::VERSION.as_bytes() => Ok(true),
        Some(version) if version == text::WITHOUT_CHECKSUM.as_bytes() => Ok(false),
        Some(version) => {
            let why = format!("version \"{}\" is not known here", shown(version));
            Err(lines.flaw(0, why))
        }
        None => {
            let why = format!("a trace begins with \"{}{}\"", text::MAGIC, text::VERSION);
            Err(lines.flaw(u64::from(lines.number() == 0), why))
        }
    }
}

fn next_line<'a, R: Read>(
    lines: &'a mut Lines<R>,
    members: &'a mut Vec<u32>,
    definitions: &mut FileDefinitions,
    checksums: Option<Checksums>,
    ended: &mut bool,
) -> Result<Option<(Item<'a>, bool)>, Flaw> {
    if !lines.advance()? {
        return Err(lines.flaw(1, "the file is cut off here"));
    }
    let number = lines.number();
    let flaw = |why| Flaw::Line(number, why);
    if let Some(events) = text::end(lines.line()).map_err(flaw)? {
        check_end(events, definitions).map_err(flaw)?;
        *ended = true;
        match checksums {
            Some(checksums) => check_last_line(lines, checksums)?,
            None => check_no_checksum(lines)?,
        }
        lines.expect_end()?;
        return Ok(None);
    }
    let windows_end = lines.windows_end();
    let item = text::parse(lines.line(), definitions, members).map_err(flaw)?;
    definitions.take(&item).map_err(flaw)?;
    Ok(Some((item, windows_end)))
}

/// Reads the checksum at the end of a trace.
fn check_last_line<R: Read>(lines: &mut Lines<R>, checksums: Checksums) -> Result<(), Flaw> {
    if !lines.advance()? {
        let is_missing = lines.unfinished().is_empty();
        return match checksums {
            // An editor may have removed it.
            Checksums::Ignore if is_missing => Ok(()),
            Checksums::Verify if is_missing => {
                let first = format!("{}{}", text::MAGIC, text::WITHOUT_CHECKSUM);
                let why = "the checksum is missing; a trace that is written by hand begins with";
                Err(lines.flaw(1, format!("{why} \"{first}\"")))
            }
            _ => Err(lines.flaw(1, "the file is cut off here")),
        };
    }
    match text::CHECKSUM.check(lines, checksums)? {
        true => Ok(()),
        false => Err(lines.flaw(0, "the checksum of the trace is missing")),
    }
}

/// Checks that there is no checksum at the end of a trace whose first line says so.
fn check_no_checksum<R: Read>(lines: &mut Lines<R>) -> Result<(), Flaw> {
    if !lines.advance()? {
        return Ok(());
    }
    let is_checksum = lines.line().starts_with(text::CHECKSUM.before.as_bytes());
    let why = if is_checksum {
        "a checksum in a trace whose first line says \"without checksum\": remove this line, or these two words"
    } else {
        AFTER_END
    };
    Err(lines.flaw(0, why))
}

fn check_end(events: u64, definitions: &FileDefinitions) -> Result<(), String> {
    match definitions.events {
        found if found == events => Ok(()),
        found => Err(format!(
            "there are {found} events, but {events} are said to be"
        )),
    }
}
