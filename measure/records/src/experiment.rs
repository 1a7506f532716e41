//! The launches of one experiment.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use downbeat_files::open;

use super::content::{Keep, LaunchContent};
use super::error::RecordFlaw;
use super::format::ENDS;
use super::{RecordError, RecordFormat, csv};
use crate::{Factors, Launch};

/// Everything that the launches of an experiment measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// By name, in the order of the names.
    pub launches: Vec<(String, Launch)>,
}

impl Experiment {
    /// What is the same in all launches. Without launches there are none.
    pub fn factors(&self) -> &Factors {
        static NONE: Factors = Factors::none();
        self.launches
            .first()
            .map_or(&NONE, |(_, launch)| &launch.factors)
    }
}

/// Reads all launches of a folder, also those that are not complete. A single file is an experiment of one launch.
///
/// # Errors
/// When the folder is not there or holds no launch, when launches differ in a factor, when one is there in two formats,
/// or when a file cannot be read or is damaged.
pub fn read_experiment(path: &Path) -> Result<Experiment, RecordError> {
    let mut launches: Vec<(String, Launch)> = vec![];
    let files = launch_files(path)?;
    for (name, file) in &files {
        let launch = read_launch(file)?;
        if let (Some((_, first)), Some((_, of_first))) = (launches.first(), files.first()) {
            check_factors(of_first, &first.factors, Some(file), &launch.factors)?;
        }
        launches.push((name.clone(), launch));
    }
    Ok(Experiment { launches })
}

/// Refuses launches of different experiments.
pub(super) fn check_factors(
    first: &Path,
    of_first: &Factors,
    second: Option<&Path>,
    of_second: &Factors,
) -> Result<(), RecordError> {
    let Some(factor) = of_first.differing(of_second) else {
        return Ok(());
    };
    Err(RecordError::Differ {
        first: first.to_owned(),
        second: second.map(Path::to_owned),
        factor: factor.to_owned(),
        values: [of_first, of_second].map(|factors| factors.get(factor).map(str::to_owned)),
    })
}

/// The names and files of the launches of a folder, in the order of the names; there is at least one. Whether they can
/// be read is another question. A single file is there alone.
///
/// # Errors
/// When the folder is not there or holds no launch, or when a launch is there in two formats.
pub fn launch_files(path: &Path) -> Result<Vec<(String, PathBuf)>, RecordError> {
    let mut found = files_in(path)?;
    if found.is_empty() {
        return Err(RecordError::content(
            path,
            "there is no record of a launch in this folder",
        ));
    }
    // Whoever writes Parquet removes the text only afterwards.
    let replaced: Vec<PathBuf> = found
        .iter()
        .filter(|(_, file)| has_end(file, "parquet"))
        .map(|(_, file)| file.with_extension("csv"))
        .collect();
    found.retain(|(_, file)| !replaced.contains(file));
    match found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(twice) => {
            let first = twice[0].1.display();
            Err(RecordError::content(
                &twice[1].1,
                format!("the same launch is there as {first}, too"),
            ))
        }
        None => Ok(found),
    }
}

fn files_in(path: &Path) -> Result<Vec<(String, PathBuf)>, RecordError> {
    let launch = |file: PathBuf| {
        (
            file.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            file,
        )
    };
    if fs::metadata(path).map_err(RecordError::io(path))?.is_file() {
        return Ok(vec![launch(path.to_owned())]);
    }
    let mut found = vec![];
    for entry in fs::read_dir(path).map_err(RecordError::io(path))? {
        let entry = entry.map_err(RecordError::io(path))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let hidden = name.starts_with('.') || name.ends_with(".raw.csv");
        if !hidden && ENDS.iter().any(|end| has_end(&entry.path(), end)) {
            found.push(launch(entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn has_end(file: &Path, end: &str) -> bool {
    file.extension().is_some_and(|found| found == end)
}

/// Reads one launch. One that is not complete has the groups that were finished.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn read_launch(path: &Path) -> Result<Launch, RecordError> {
    read(path, RecordFormat::from_path(path)?, Keep::Valid).map(|found| found.launch)
}

/// Reads the factors and the facts that a launch began with, and nothing of what it measured.
///
/// # Errors
/// When the file cannot be read or its head is damaged.
pub fn read_header(path: &Path) -> Result<(Factors, Factors), RecordError> {
    read(path, RecordFormat::from_path(path)?, Keep::Header)
        .map(|LaunchContent { launch, .. }| (launch.factors, launch.facts))
}

/// Whether a launch says that it is complete; nothing else is read.
///
/// # Errors
/// When the file cannot be read.
pub fn is_complete(path: &Path) -> Result<bool, RecordError> {
    let last_line: &[u8] = match RecordFormat::from_path(path)? {
        RecordFormat::Csv => b"\n# complete",
        #[cfg(feature = "json")]
        RecordFormat::JsonLines => super::json::COMPLETE.as_bytes(),
        // There is none before.
        #[cfg(feature = "parquet")]
        RecordFormat::Parquet => return read_header(path).map(|_| true),
    };
    let last_bytes = |file: &mut File| {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(64)))?;
        let mut last = vec![];
        file.take(64).read_to_end(&mut last).map(|_| last)
    };
    let last = last_bytes(&mut open(path)?).map_err(RecordError::io(path))?;
    let last = last
        .strip_suffix(b"\n")
        .map(|last| last.strip_suffix(b"\r").unwrap_or(last));
    Ok(last.is_some_and(|last| last.ends_with(last_line)))
}

pub(super) fn read(
    path: &Path,
    format: RecordFormat,
    keep: Keep,
) -> Result<LaunchContent, RecordError> {
    read_open(&open(path)?, format, keep).map_err(|flaw| flaw.in_file(path))
}

/// Reads a file from where it stands.
pub(super) fn read_open(
    file: &File,
    format: RecordFormat,
    keep: Keep,
) -> Result<LaunchContent, RecordFlaw> {
    match format {
        RecordFormat::Csv => csv::read(file, keep),
        #[cfg(feature = "json")]
        RecordFormat::JsonLines => super::json::read(file, keep),
        #[cfg(feature = "parquet")]
        RecordFormat::Parquet => super::parquet::read(file, keep),
    }
}
