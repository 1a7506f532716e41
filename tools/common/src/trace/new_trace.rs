//! Traces that programs write: archives, or text.

use std::path::{Path, PathBuf};

use downbeat_files::FileError;
use downbeat_trace::formats::otf2::{check_destination, create};
use downbeat_trace::formats::{Item, MergedItems, TraceWriter};

use super::files::archive_failure;
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
    /// If it cannot be written, or the folder of an archive exists.
    pub fn claim(outputs: &mut Outputs, option: &str, path: &Path) -> Result<(), Failure> {
        match Self::is_text(path) {
            true => outputs.file(option, path),
            false => Self::claim_archive(outputs, option, path),
        }
    }

    /// Adds the new folder of an archive to the outputs of a command.
    ///
    /// # Errors
    /// If it cannot be written, exists, or has the name of a file.
    pub(super) fn claim_archive(
        outputs: &mut Outputs,
        option: &str,
        path: &Path,
    ) -> Result<(), Failure> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let why = match ending {
            Some("otf2") => "an archive is written to a folder, not to a file",
            Some("dbtb") => {
                "there are no binary traces any more: name a new folder for an archive, or .dbt"
            }
            Some("json" | "gz" | "csv" | "parquet" | "pftrace" | "perfetto-trace") => {
                "the name must end in .dbt, or be that of a new folder for an archive"
            }
            _ => {
                outputs.claim(option, path)?;
                return check_destination(path).map_err(|why| Failure::option(option, why));
            }
        };
        let why = format!("{}: {why}", path.display());
        Err(Failure::option(option, why))
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
