//! STAND-IN until `downbeat_measure::records` is there.

use std::fs;
use std::path::{Path, PathBuf};

use downbeat_measure::Factors;

pub(super) fn launch_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(why) => return Err(why.to_string()),
    };
    all.retain(|path| path.extension().is_some_and(|e| e == "csv") && !path.to_string_lossy().ends_with(".raw.csv"));
    all.sort();
    Ok(all)
}

pub(super) fn read_head(path: &Path) -> Result<Factors, String> {
    let text = fs::read_to_string(path).map_err(|why| why.to_string())?;
    if !text.starts_with("# downbeat launch 1\n") || !text.contains("\noperation") {
        return Err("no head".to_owned());
    }
    let of = |line: &str| line.strip_prefix("# factor ")?.split_once(" = ").map(|(n, v)| (n.to_owned(), v.to_owned()));
    Ok(text.lines().filter_map(of).fold(Factors::default(), |all, (name, value)| all.with(&name, &value)))
}

pub(super) fn is_complete(path: &Path) -> Result<bool, String> {
    Ok(fs::read_to_string(path).map_err(|why| why.to_string())?.ends_with("# complete\n"))
}
