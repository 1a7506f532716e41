//! Temporary names beside a target, for content that is not complete yet.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates a file or folder with a temporary name in the folder of `path`, to be renamed to `path`
/// later.
pub fn create_beside<T>(
    path: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    /// Maximum number of names to try: killed programs with the same process id may have left some
    /// behind.
    const MOST: u32 = 1_000;
    for attempt in 0..MOST {
        let mut name = prefix(path).ok_or(io::ErrorKind::IsADirectory)?;
        name.push(format!("{attempt}{SUFFIX}"));
        let beside = path.with_file_name(name);
        match make(&beside) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (beside, made)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

const SUFFIX: &str = ".part";

fn prefix(path: &Path) -> Option<OsString> {
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}-", std::process::id()));
    Some(name)
}

/// Returns the folder of a file: `.` if the path is a mere name.
pub fn folder_of(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Lists the temporary files and folders that this process has created for `path`.
///
/// A program that a signal ends removes them.
pub fn unfinished(path: &Path) -> Vec<PathBuf> {
    // The target of a link: that is where the temporary files are.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = folder_of(&path);
    let (Some(prefix), Ok(entries)) = (prefix(&path), fs::read_dir(folder)) else {
        return vec![];
    };
    let is_ours = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(prefix.as_encoded_bytes()) && name.ends_with(SUFFIX.as_bytes())
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names
        .filter(is_ours)
        .map(|name| folder.join(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TemporaryFolder;

    #[test]
    fn temporary_files_are_listed() {
        let (folder, other) = TemporaryFolder::with_file("other", b"");
        let path = folder.file("trace");
        assert!(unfinished(&path).is_empty());
        let (first, ()) = create_beside(&path, |path| fs::create_dir(path)).unwrap();
        let (second, _) = create_beside(&path, |path| fs::File::create_new(path)).unwrap();
        let mut found = unfinished(&path);
        found.sort_unstable();
        assert_eq!(found, [first, second]);
        assert!(unfinished(&other).is_empty());
        fs::rename(&found[1], &path).unwrap();
        assert_eq!(unfinished(&path).len(), 1);
    }
}
