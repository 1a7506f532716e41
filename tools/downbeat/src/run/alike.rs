//! Launches of one folder have equal factors: one that has others is not left among them.

use std::fs;
use std::path::{Path, PathBuf};

use downbeat_common::Failure;
use downbeat_measure::Factors;

use super::plan::Planned;
use super::record::{is_complete, launch_files, read_head};

/// The launches that a folder holds.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
    /// What all launches must have, and whose that is.
    standard: Option<(PathBuf, Factors)>,
}

impl Records {
    /// Those that are there already.
    ///
    /// # Errors
    /// When they differ. Those of the plan that come later are the odd ones, and what is not of the plan comes last.
    pub(super) fn check(folder: &Path, planned: &[&Planned]) -> Result<Self, Failure> {
        let mut records = Self { folder: folder.to_owned(), standard: None };
        let mut files = files(folder)?;
        let place = |path: &PathBuf| {
            let name = name_of(path);
            planned.iter().position(|launch| launch.name == name).unwrap_or(planned.len())
        };
        files.sort_by_key(place);
        for path in &files {
            // One that has no head yet has nothing that differs; its program goes on with it, or begins anew.
            if let Ok(factors) = read_head(path) {
                records.admit(path, factors)?;
            }
        }
        Ok(records)
    }

    /// Whether the launch of this name has everything.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn complete(&self, name: &str) -> Result<bool, Failure> {
        complete(&self.folder, name)
    }

    /// Takes a launch that is now complete among the others.
    ///
    /// # Errors
    /// When it differs from them: it is then moved aside.
    pub(super) fn add(&mut self, name: &str) -> Result<(), Failure> {
        for path in of(&self.folder, name)? {
            let factors = read_head(&path).map_err(|why| Failure::run(format!("{}: {why}", path.display())))?;
            self.admit(&path, factors)?;
        }
        Ok(())
    }

    fn admit(&mut self, path: &Path, factors: Factors) -> Result<(), Failure> {
        let Some((first, standard)) = &self.standard else {
            self.standard = Some((path.to_owned(), factors));
            return Ok(());
        };
        let Some(factor) = standard.differing(&factors) else { return Ok(()) };
        let value =
            |factors: &Factors| factors.get(factor).map_or_else(|| "missing".to_owned(), |value| format!("'{value}'"));
        let (here, there) = (value(&factors), value(standard));
        let why = format!("factor {factor} is {here} in {}, but {there} in {}", path.display(), first.display());
        let aside = set_aside(path).map_err(|error| {
            Failure::run(format!("{why}; it cannot be moved aside, which is to be done by hand: {error}"))
        })?;
        Err(Failure::Run(format!("{why}: moved to {}; the same command line launches it again", aside.display())))
    }
}

/// Whether the launch of this name is complete in this folder.
///
/// # Errors
/// When the folder cannot be read.
pub(super) fn complete(folder: &Path, name: &str) -> Result<bool, Failure> {
    Ok(of(folder, name)?.iter().any(|path| is_complete(path).unwrap_or(false)))
}

fn of(folder: &Path, name: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = files(folder)?;
    files.retain(|path| name_of(path) == name);
    Ok(files)
}

/// The records of a folder.
///
/// # Errors
/// When it cannot be read.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    launch_files(folder).map_err(|why| Failure::run(format!("{}: {why}", folder.display())))
}

/// That of the launch which has this record.
fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Renames a record, and its raw one, so that nobody takes it for a launch; nothing that is there is overwritten.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let with = |path: &Path, suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let suffixes = (1..).map(|i| if i == 1 { ".differs".to_owned() } else { format!(".differs-{i}") });
    let raw = path.with_extension("raw.csv");
    for suffix in suffixes {
        let (aside, raw_aside) = (with(path, &suffix), with(&raw, &suffix));
        if aside.try_exists()? || raw_aside.try_exists()? {
            continue;
        }
        if raw.try_exists()? {
            fs::rename(&raw, &raw_aside)?;
        }
        fs::rename(path, &aside)?;
        return Ok(aside);
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, ranks: u32) {
        let text = format!(
            "# downbeat launch 1\n# factor ranks = {ranks}\noperation,bytes,ranks,call,state,nanos\n# complete\n"
        );
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_odd_one_is_moved_aside_and_named() {
        let folder = std::env::temp_dir().join(format!("downbeat-alike-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let planned = |name: &str| Planned { variant: 0, name: name.to_owned(), label: name.to_owned() };
        let (first, second) = (planned("launch-002"), planned("launch-001"));
        write(&path("launch-002.csv"), 4);
        fs::write(path("launch-003.csv"), "# downb").unwrap();
        for aside in ["launch-001.csv.differs", "launch-001.csv.differs-2"] {
            write(&path("launch-001.csv"), 8);
            fs::write(path("launch-001.raw.csv"), "raw").unwrap();
            let failure = Records::check(&folder, &[&first, &second]).unwrap_err();
            let Failure::Run(why) = failure else { panic!("{failure:?}") };
            let said = format!(
                "factor ranks is '8' in {}, but '4' in {}: moved to {}",
                path("launch-001.csv").display(),
                path("launch-002.csv").display(),
                path(aside).display()
            );
            assert!(why.starts_with(&said), "{why}");
            assert!(path(aside).exists() && path(&aside.replace(".csv", ".raw.csv")).exists());
            assert!(!path("launch-001.csv").exists() && !path("launch-001.raw.csv").exists());
        }
        let mut records = Records::check(&folder, &[&first, &second]).unwrap();
        assert!(records.complete("launch-002").unwrap() && !records.complete("launch-003").unwrap());
        write(&path("launch-001.csv"), 4);
        records.add("launch-001").unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
