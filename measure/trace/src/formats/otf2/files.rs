//! Which files an archive consists of.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::Otf2Error;

/// Where the global definitions are: beside the anchor file, `NAME.otf2`, as `NAME.def`.
pub(super) fn globals(anchor: &Path) -> PathBuf {
    anchor.with_extension("def")
}

/// Where definitions (`def`) or events (`evt`) of a location are: in the folder `NAME`.
pub(super) fn local(anchor: &Path, location: u64, extension: &str) -> PathBuf {
    anchor
        .with_extension("")
        .join(format!("{location}.{extension}"))
}

/// Where the anchor file is.
pub(super) fn folder(anchor: &Path) -> &Path {
    anchor
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// All files, as they are called in the folder of the anchor file: those that are named as that is, and those in the
/// folder of the locations. In order.
pub(super) fn all(anchor: &Path) -> Result<Vec<PathBuf>, Otf2Error> {
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

/// What files of a folder are called.
fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, Otf2Error> {
    let mut names = vec![];
    for entry in fs::read_dir(folder).map_err(Otf2Error::io(folder))? {
        let entry = entry.map_err(Otf2Error::io(folder))?;
        // Links are followed.
        if entry.path().is_file() {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}
