//! Paths of the files of an archive, of which the anchor file tells all others.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, LocationRef};

/// Returns the path of the global definitions: `NAME.def`, next to the anchor file `NAME.otf2`.
pub fn global_definitions(anchor: &Path) -> PathBuf {
    anchor.with_extension("def")
}

/// Returns the path of the definitions (`def`), events (`evt`) or snapshots (`snap`) of a location, in
/// the folder `NAME`.
pub fn local(anchor: &Path, LocationRef(location): LocationRef, extension: &str) -> PathBuf {
    anchor
        .with_extension("")
        .join(format!("{location}.{extension}"))
}

/// Returns the folder of the anchor file.
pub fn folder(anchor: &Path) -> &Path {
    anchor
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Lists all files of the archive, sorted and relative to the folder of the anchor file: those with
/// the archive's name, and those in the folder of its locations.
///
/// # Errors
/// If a folder cannot be read.
pub fn all(anchor: &Path) -> Result<Vec<PathBuf>, Error> {
    let stem = anchor.file_stem().unwrap_or_default();
    let is_named = |name: &OsStr| {
        let rest = name
            .as_encoded_bytes()
            .strip_prefix(stem.as_encoded_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"."))
    };
    let beside = names(folder(anchor))?
        .into_iter()
        .filter(|name| is_named(name))
        .map(PathBuf::from);
    let locations = anchor.with_extension("");
    let inside = if locations.is_dir() {
        names(&locations)?
    } else {
        vec![]
    };
    let mut all: Vec<_> = beside
        .chain(inside.into_iter().map(|name| Path::new(stem).join(name)))
        .collect();
    all.sort_unstable();
    Ok(all)
}

/// Lists the names of the files in a folder.
fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, Error> {
    let mut names = vec![];
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let entry = entry.map_err(Error::io(folder))?;
        // Follows symbolic links.
        if entry.path().is_file() {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}
