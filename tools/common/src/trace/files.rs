//! Input and output files of the commands for traces.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use downbeat_trace::formats::otf2::Otf2Error;

use crate::Failure;

/// Returns all files of a trace: one, or those of an archive as far as they can be listed.
pub fn all_of(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if is_archive(path) {
        all.push(path.with_extension("def"));
        let events = fs::read_dir(path.with_extension("")).into_iter().flatten();
        all.extend(events.flatten().map(|entry| entry.path()));
    }
    all
}

/// Returns the parser of the path of a trace: an archive may be named by its folder, and
/// becomes its anchor file.
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(anchor_or_file)
}

/// Returns the anchor file of an archive of ours that is named by its folder, or else the
/// path.
pub fn anchor_or_file(path: PathBuf) -> PathBuf {
    let anchor = path.join("traces.otf2");
    if anchor.is_file() { anchor } else { path }
}

/// Returns the name of a trace: of the folder of an archive of ours, or of a file without
/// its ending.
pub fn name_of(path: &Path) -> OsString {
    let folder = path.parent().and_then(Path::file_name);
    let is_ours = path.file_name().is_some_and(|name| name == "traces.otf2");
    let name = folder.filter(|_| is_ours).or_else(|| path.file_stem());
    name.unwrap_or_default().to_owned()
}

/// Returns true if this is the name of the anchor file of an OTF2 archive.
pub fn is_archive(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "otf2")
}

/// Returns true if this is the name of a file of Chrome's JSON, compressed by gzip or
/// not, as Kineto writes it.
pub fn is_chrome(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.ends_with(".json") || name.ends_with(".json.gz"))
}

/// Refuses Chrome's JSON, whose events are in no order.
///
/// # Errors
/// If the trace is one.
pub fn refuse_chrome(path: &Path) -> Result<(), Failure> {
    if !is_chrome(path) {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::Input(format!(
        "{path}: convert Chrome's JSON first: downbeat trace convert {path} NAME.dbt"
    )))
}

/// Returns the failure for an archive that cannot be written: because of the output, or else of the
/// content of the input.
pub fn archive_failure(why: Otf2Error) -> Failure {
    match why {
        Otf2Error::Io { .. } => Failure::run(why),
        why => Failure::Input(why.to_string()),
    }
}

/// Returns the failure for an option that only applies to archives.
pub fn is_no_archive(option: &str, path: &Path) -> Failure {
    Failure::option(
        option,
        format!(
            "{} is not an OTF2 archive; this option only applies to archives",
            path.display()
        ),
    )
}
