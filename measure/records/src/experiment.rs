//! Reading the launches of an experiment.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use downbeat_files::{Checksums, open};

use super::content::{Keep, LaunchContent};
use super::format::ENDS;
use super::{RecordError, RecordFormat, csv};
use crate::{Factors, Launch};

/// All launches of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Names and launches, in the order of the names.
    pub launches: Vec<(String, Launch)>,
}

impl Experiment {
    /// Factors of the experiment, common to all launches that have a group; empty without launches.
    pub fn factors(&self) -> &Factors {
        static NONE: Factors = Factors::none();
        first_binding(&self.launches).map_or(&NONE, |(_, launch)| &launch.factors)
    }
}

/// Returns the launch whose factors are those of the experiment: the first that [binds](Launch::binds), or the first of all.
pub(crate) fn first_binding(launches: &[(String, Launch)]) -> Option<&(String, Launch)> {
    let binding = launches.iter().find(|(_, launch)| launch.binds());
    binding.or_else(|| launches.first())
}

/// Reads all launches of a folder, also incomplete ones. A single file is an experiment of one
/// launch.
///
/// # Errors
/// If the folder does not exist or contains no launch, launches with a group differ in a factor, or a file cannot be
/// read or is damaged.
pub fn read_experiment(path: &Path, checksums: Checksums) -> Result<Experiment, RecordError> {
    let mut launches: Vec<(String, Launch)> = vec![];
    let mut standard: Option<(PathBuf, Factors)> = None;
    for (name, file) in launch_files(path)? {
        let launch = read_launch(&file, checksums)?;
        match &standard {
            _ if !launch.binds() => (),
            None => standard = Some((file, launch.factors.clone())),
            Some((first, factors)) => {
                check_factors(first, factors, Some(&file), &launch.factors)?;
            }
        }
        launches.push((name, launch));
    }
    Ok(Experiment { launches })
}

/// Checks that two launches have the same factors.
pub(super) fn check_factors(
    first: &Path,
    first_factors: &Factors,
    second: Option<&Path>,
    second_factors: &Factors,
) -> Result<(), RecordError> {
    let Some(factor) = first_factors.differing(second_factors) else {
        return Ok(());
    };
    Err(RecordError::Differ {
        first: first.to_owned(),
        second: second.map(Path::to_owned),
        factor: factor.to_owned(),
        values: [first_factors, second_factors]
            .map(|factors| factors.get(factor).map(str::to_owned)),
    })
}

/// Lists the names and files of the launches in a folder, at least one, in the order of the names;
/// does not read them. For a single file, lists only that file.
///
/// # Errors
/// If the folder does not exist or contains no launch.
pub fn launch_files(path: &Path) -> Result<Vec<(String, PathBuf)>, RecordError> {
    let mut found = files_in(path)?;
    if found.is_empty() {
        return Err(RecordError::content(
            path,
            "this folder contains no record of a launch",
        ));
    }
    // The CSV file is removed only after the Parquet file is complete, so both may exist.
    let replaced: Vec<PathBuf> = found
        .iter()
        .filter(|(_, file)| has_end(file, "parquet"))
        .map(|(_, file)| file.with_extension("csv"))
        .collect();
    found.retain(|(_, file)| !replaced.contains(file));
    Ok(found)
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

/// Reads one launch. An incomplete one has the groups that were finished.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub fn read_launch(path: &Path, checksums: Checksums) -> Result<Launch, RecordError> {
    read(path, Keep::Valid, checksums).map(|found| found.launch)
}

/// Reads the factors and facts in the header of a launch, and nothing else.
///
/// # Errors
/// If the file cannot be read or its header is damaged.
pub fn read_header(path: &Path, checksums: Checksums) -> Result<(Factors, Factors), RecordError> {
    read(path, Keep::Header, checksums)
        .map(|LaunchContent { launch, .. }| (launch.factors, launch.facts))
}

/// Reads the factors and facts of a launch if it [binds](Launch::binds); of a complete one, reads only the header.
///
/// # Errors
/// If the file cannot be read or is damaged.
pub fn read_binding(path: &Path, checksums: Checksums) -> Result<Option<Launch>, RecordError> {
    if is_complete(path)? {
        let (factors, facts) = read_header(path, checksums)?;
        return Ok(Some(Launch {
            factors,
            facts,
            complete: true,
            ..Launch::default()
        }));
    }
    let launch = read_launch(path, checksums)?;
    Ok(launch.binds().then_some(launch))
}

/// Returns true if a launch is complete; reads only the end of the file.
///
/// # Errors
/// If the file cannot be read.
pub fn is_complete(path: &Path) -> Result<bool, RecordError> {
    match RecordFormat::from_path(path)? {
        RecordFormat::Csv => {}
        // A Parquet file is written only when the launch is complete.
        #[cfg(feature = "parquet")]
        RecordFormat::Parquet => return read_header(path, Checksums::Verify).map(|_| true),
    }
    let mut file = open(path)?;
    let length = file.metadata().map_err(RecordError::io(path))?.len();
    let mut last = vec![];
    file.seek(SeekFrom::Start(length.saturating_sub(64)))
        .and_then(|_| file.read_to_end(&mut last))
        .map_err(RecordError::io(path))?;
    Ok(csv::ends_complete(&last))
}

pub(super) fn read(
    path: &Path,
    keep: Keep,
    checksums: Checksums,
) -> Result<LaunchContent, RecordError> {
    let format = RecordFormat::from_path(path)?;
    let file = open(path)?;
    let found = match format {
        RecordFormat::Csv => csv::read(file, keep, checksums),
        #[cfg(feature = "parquet")]
        RecordFormat::Parquet => super::parquet::read(file, keep),
    };
    found.map_err(|flaw| flaw.in_file(path))
}

/// Checks the name of a launch, which is that of its files.
pub(super) fn check_launch_name(name: &str) -> Result<(), String> {
    let odd = |c: char| c == '/' || c == '\\' || c.is_control();
    let is_odd = name.starts_with('.') || name.ends_with(".raw") || name.contains(odd);
    if name.is_empty() || is_odd || is_of_node(name) {
        return Err(format!(
            "\"{}\" is not a valid launch name",
            name.escape_debug()
        ));
    }
    Ok(())
}

/// Returns true if a launch of this name would have the file of another one.
fn is_of_node(name: &str) -> bool {
    let number = name.rsplit_once(".node").map(|(_, number)| number);
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}
