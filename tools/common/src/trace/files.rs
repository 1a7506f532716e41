//! Input and output files of the commands for traces.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use downbeat_trace::formats::otf2::Otf2Error;

use crate::{Failure, did_you_mean};

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
/// becomes its anchor file. [`refuse_folder`] refuses other folders.
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(anchor_or_file)
}

/// Returns the anchor file of an archive that is named by its folder, or else the path:
/// of a file, or of a folder without an anchor file or with several.
pub fn anchor_or_file(path: PathBuf) -> PathBuf {
    match &anchors_in(&path)[..] {
        [anchor] => anchor.clone(),
        _ => path,
    }
}

/// Returns the anchor files in a folder, none if the path is not that of a folder.
fn anchors_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| is_archive(path) && path.is_file())
        .collect()
}

/// Returns a folder with one archive in this folder, as that of a recording has.
fn archive_inside(path: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    folders.filter(|path| anchors_in(path).len() == 1).min()
}

/// Refuses a folder, which is the path of a trace only if [`anchor_or_file`] found no
/// anchor file or several.
///
/// # Errors
/// If the path is that of a folder.
pub fn refuse_folder(path: &Path) -> Result<(), Failure> {
    if !path.is_dir() {
        return Ok(());
    }
    let why = match fs::read_dir(path) {
        Err(why) => why.to_string(),
        Ok(_) if anchors_in(path).len() > 1 => {
            "several anchor files are in this folder: name one".to_owned()
        }
        Ok(_) => {
            let why = "no anchor file, NAME.otf2, is in this folder".to_owned();
            let inside = archive_inside(path).map(|inside| inside.display().to_string());
            why + &did_you_mean(inside.as_deref())
        }
    };
    Err(Failure::Input(format!("{}: {why}", path.display())))
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
    fs::metadata(path).map_err(|why| Failure::Input(format!("{}: {why}", path.display())))?;
    let path = path.display();
    Err(Failure::Input(format!(
        "{path}: convert Chrome's JSON first: downbeat trace convert {path} NAME"
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
