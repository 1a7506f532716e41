//! Folders of imported launches: nothing that is in them is replaced.

use std::fmt;
use std::path::{Path, PathBuf};

use downbeat_common::Failure;
use downbeat_files::Checksums;
use downbeat_records::{Journal, Launch, Observations, RecordError};
use downbeat_records::{RecordFormat, launch_files, read_launch};

use crate::experiments::is_without_launches;

/// File that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// Origin of a launch.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    /// Number of the output in a file with several.
    pub(super) output: Option<usize>,
}

/// Written as `runs.txt, output 2`.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.output
            .map_or(Ok(()), |output| write!(f, ", output {output}"))
    }
}

/// A folder, and the launches that belong into it.
#[derive(Debug)]
pub(super) struct Target {
    folder: PathBuf,
    launches: Vec<(Source, Launch)>,
}

impl Target {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            launches: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, source: Source, launch: Launch) {
        self.launches.push((source, launch));
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.launches.iter().map(|(_, launch)| launch)
    }

    /// Names the record of each launch; `None` if it exists with this content. Launches that continue those of the folder are
    /// numbered after them.
    ///
    /// # Errors
    /// If launches have different factors, or a record with this name has other content.
    pub(super) fn plan(&self, append: bool) -> Result<Vec<Option<String>>, Failure> {
        let existing = self.existing()?;
        self.check_factors(&existing)?;
        let numbers = existing
            .iter()
            .filter_map(|(name, _)| name.strip_prefix("launch-")?.parse::<usize>().ok());
        let mut number = if append {
            numbers.max().unwrap_or(0)
        } else {
            0
        };
        let mut names = Vec::new();
        for (source, launch) in &self.launches {
            let is_named = source.file != Path::new(STANDARD_INPUT);
            if append && is_named && existing.iter().any(|(_, known)| known == launch) {
                names.push(None);
                continue;
            }
            number += 1;
            let name = format!("launch-{number:03}");
            match existing.iter().find(|(known, _)| *known == name) {
                None => names.push(Some(name)),
                Some((_, known)) if known == launch => names.push(None),
                Some(_) => {
                    let why = format!(
                        "{} has other content than {source}: choose another folder, or --append",
                        self.folder.join(name).display()
                    );
                    return Err(Failure::option("--out", why));
                }
            }
        }
        Ok(names)
    }

    /// Reads the launches that are in the folder.
    fn existing(&self) -> Result<Vec<(String, Launch)>, Failure> {
        match std::fs::read_dir(&self.folder) {
            Ok(_) if is_without_launches(&self.folder) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => {
                let why = format!("{}: {why}", self.folder.display());
                return Err(Failure::option("--out", why));
            }
        }
        let files = launch_files(&self.folder).map_err(|why| Failure::option("--out", why))?;
        let read = |(name, file): (String, PathBuf)| {
            read_launch(&file, Checksums::Verify).map(|launch| (name, launch))
        };
        files
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()
            .map_err(|why| Failure::option("--out", why))
    }

    /// Checks that all launches have the same factors.
    fn check_factors(&self, existing: &[(String, Launch)]) -> Result<(), Failure> {
        let old = existing
            .iter()
            .map(|(name, launch)| (self.folder.join(name).display().to_string(), launch));
        let new = self
            .launches
            .iter()
            .map(|(source, launch)| (source.to_string(), launch));
        let mut all = old.filter(|(_, launch)| launch.binds()).chain(new);
        let Some((first, standard)) = all.next() else {
            return Ok(());
        };
        for (source, launch) in all {
            if let Some(factor) = standard.factors.differing(&launch.factors) {
                let value = |launch: &Launch| {
                    launch
                        .factors
                        .get(factor)
                        .map_or_else(|| "not stated".to_owned(), |value| format!("\"{value}\""))
                };
                return Err(Failure::Input(format!(
                    "{source}: {factor} is {} here, but {} in {first}: import them into different folders",
                    value(launch),
                    value(standard)
                )));
            }
        }
        Ok(())
    }

    /// Writes records with these names; `None` is left alone. Each appears when it is whole, so that an import that was killed can
    /// be repeated. Returns the number of records.
    pub(super) fn write(&self, names: &[Option<String>]) -> Result<usize, Failure> {
        let beside = Beside(self.folder.join(format!(".import-{}", std::process::id())));
        let mut written = 0;
        for (launch, name) in self.launches().zip(names) {
            if let Some(name) = name {
                let failed = |why: &dyn fmt::Display| Failure::run(format!("--out: {why}"));
                beside.write(name, launch).map_err(|why| failed(&why))?;
                let file = format!("{name}.csv");
                std::fs::rename(beside.0.join(&file), self.folder.join(file))
                    .map_err(|why| failed(&why))?;
                written += 1;
            }
        }
        Ok(written)
    }
}

/// Folder of records that are being written; dropping it removes it.
struct Beside(PathBuf);

impl Beside {
    fn write(&self, name: &str, launch: &Launch) -> Result<(), RecordError> {
        let Launch {
            factors,
            facts,
            groups,
            complete,
        } = launch;
        let mut journal = Journal::open(&self.0, name, RecordFormat::Csv, false, factors, facts)?;
        for group in groups {
            journal.append(group, &Observations::of_durations(&group.nanos))?;
        }
        if *complete {
            journal.complete()?;
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It does not exist if nothing was written; other errors cannot be reported here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
