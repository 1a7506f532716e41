//! Traces that programs write: archives, or text.

use std::path::{Path, PathBuf};

use downbeat_files::FileError;
use downbeat_trace::formats::otf2::{check_destination, create};
use downbeat_trace::formats::{Item, MergedItems, TraceWriter};

use super::files::{archive_failure, is_archive};
use crate::{Failure, Outputs};

/// Trace that is written item by item: a text file where its name ends in `.dbt`, or an
/// OTF2 archive in a new folder. It appears when it is complete.
#[derive(Debug)]
pub enum NewTrace {
    /// Text.
    Text(PathBuf, TraceWriter),
    /// Items of an archive, in temporary files next to its folder.
    Archive(PathBuf, Box<MergedItems>),
}

impl NewTrace {
    /// Returns true if a trace of this name is text.
    pub fn is_text(path: &Path) -> bool {
        path.extension().is_some_and(|ending| ending == "dbt")
    }

    /// Adds the trace to the outputs of a command; `option` names it.
    ///
    /// # Errors
    /// If it cannot be written, has the name of a file of another format, or the folder
    /// of an archive exists.
    pub fn claim(outputs: &mut Outputs, option: &str, path: &Path) -> Result<(), Failure> {
        let why = match OtherFormat::of_name(path) {
            _ if Self::is_text(path) => return outputs.file(option, path),
            None => return claim_folder(outputs, option, path),
            Some(OtherFormat::BinaryTrace) => {
                "there are no binary traces any more: name a new folder for an archive, or .dbt"
            }
            Some(OtherFormat::Viewer) => {
                "the name must end in .dbt, or be that of a new folder for an archive; \
                 downbeat trace convert writes other formats"
            }
        };
        Err(refused(option, path, why))
    }

    /// Adds a corrected trace to the outputs of a command: a file for text, a new folder
    /// for an archive.
    ///
    /// # Errors
    /// If it cannot be written, or that of an archive exists or has the name of a file.
    pub(super) fn claim_corrected(
        outputs: &mut Outputs,
        option: &str,
        [input, output]: [&Path; 2],
    ) -> Result<(), Failure> {
        let why = match OtherFormat::of_name(output) {
            _ if !is_archive(input) => {
                refuse_stdout(option, output)?;
                return outputs.file(option, output);
            }
            _ if Self::is_text(output) => {
                "a corrected archive is a folder, not text: see downbeat trace convert"
            }
            Some(_) => "a corrected archive is a folder, not a file: see downbeat trace convert",
            None => return claim_folder(outputs, option, output),
        };
        Err(refused(option, output, why))
    }

    /// Begins a trace.
    ///
    /// # Errors
    /// If the file, or a temporary file, cannot be created.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let to = path.to_owned();
        Ok(match Self::is_text(path) {
            true => Self::Text(to, TraceWriter::create(path)?),
            false => Self::Archive(to, Box::new(MergedItems::new(path)?)),
        })
    }

    /// Writes the next item.
    ///
    /// # Errors
    /// As [`TraceWriter::write`] and [`MergedItems::take`].
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        match self {
            Self::Text(_, writer) => writer.write(item),
            Self::Archive(_, items) => items.take(item),
        }
    }

    /// Ends the trace. Returns the file, or the anchor file of the archive.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<PathBuf, Failure> {
        match self {
            Self::Text(path, writer) => writer.finish().map(|()| path).map_err(Failure::run),
            Self::Archive(folder, mut items) => {
                items.finish().map_err(Failure::run)?;
                let new = create(&items, &folder).map_err(archive_failure)?;
                Ok(new.anchor)
            }
        }
    }
}

/// Format that no command writes as a trace, though its name is not that of a folder.
enum OtherFormat {
    /// Binary trace of former versions.
    BinaryTrace,
    /// Format of programs that show traces, compress them or compute with them.
    Viewer,
}

impl OtherFormat {
    /// Returns the format that the name of an output selects.
    fn of_name(path: &Path) -> Option<Self> {
        match path.extension().and_then(|ending| ending.to_str())? {
            "dbtb" => Some(Self::BinaryTrace),
            "json" | "gz" | "csv" | "parquet" | "pftrace" | "perfetto-trace" => Some(Self::Viewer),
            _ => None,
        }
    }
}

/// Adds the new folder of an archive to the outputs of a command.
fn claim_folder(outputs: &mut Outputs, option: &str, path: &Path) -> Result<(), Failure> {
    refuse_stdout(option, path)?;
    if is_archive(path) {
        let why = "an archive is written to a folder, not to a file";
        return Err(refused(option, path, why));
    }
    outputs.claim(option, path)?;
    check_destination(path).map_err(|why| Failure::option(option, why))
}

/// Refuses `-`, which stands for standard output where text is printed.
fn refuse_stdout(option: &str, path: &Path) -> Result<(), Failure> {
    match path == Path::new("-") {
        true => {
            let why = "a trace is not written to standard output: name a file or a folder";
            Err(refused(option, path, why))
        }
        false => Ok(()),
    }
}

/// Returns the failure for the name of an output.
fn refused(option: &str, path: &Path, why: &str) -> Failure {
    Failure::option(option, format!("{}: {why}", path.display()))
}
