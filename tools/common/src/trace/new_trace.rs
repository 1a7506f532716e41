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
        let why = match ending_of_file(path) {
            Some("dbt") => return outputs.file(option, path),
            None => return claim_folder(outputs, option, path),
            Some("dbtb") => {
                "there are no binary traces any more: name a new folder for an archive, or .dbt"
            }
            Some(_) => {
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
        if !is_archive(input) {
            refuse_stdout(option, output)?;
            return outputs.file(option, output);
        }
        let why = match ending_of_file(output) {
            None => return claim_folder(outputs, option, output),
            Some("dbt") => "a corrected archive is a folder, not text: see downbeat trace convert",
            Some(_) => "a corrected archive is a folder, not a file: see downbeat trace convert",
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
    /// As [`TraceWriter::write`] and [`MergedItems::add_item`].
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        match self {
            Self::Text(_, writer) => writer.write(item),
            Self::Archive(_, items) => items.add_item(item),
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

/// Returns the ending of a name that is not that of a folder: of text, of former versions,
/// or of programs that show traces, compress them or compute with them.
fn ending_of_file(path: &Path) -> Option<&str> {
    const ENDINGS: [&str; 8] = [
        "dbt",
        "dbtb",
        "json",
        "gz",
        "csv",
        "parquet",
        "pftrace",
        "perfetto-trace",
    ];
    let ending = path.extension()?.to_str()?;
    ENDINGS.contains(&ending).then_some(ending)
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
