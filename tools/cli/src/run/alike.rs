//! Records of one folder must have equal factors: a record that differs is moved aside.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_common::Failure;
use downbeat_files::{Checksums, FileError};
use downbeat_records::Factors;
use downbeat_records::{RecordError, is_complete, launch_files, read_header};

/// The records of a folder.
#[derive(Debug)]
pub(super) struct LaunchRecords {
    folder: PathBuf,
    /// Factors that all records must have, with the record that they are from.
    standard: Option<(PathBuf, Factors)>,
}

impl LaunchRecords {
    /// Checks the existing records. Those of `planned` launches come first, in their order.
    ///
    /// # Errors
    /// If a record differs from the first one: it is then moved aside.
    pub(super) fn check(folder: &Path, planned: &[&str]) -> Result<Self, Failure> {
        let mut records = Self {
            folder: folder.to_owned(),
            standard: None,
        };
        let mut files = files(folder)?;
        files.sort_by_key(|(name, _)| {
            planned
                .iter()
                .position(|launch| launch == name)
                .unwrap_or(planned.len())
        });
        for (_, file) in &files {
            // A record without a complete header is ignored: its program will continue or overwrite it.
            if let Ok((factors, _)) = read_header(file, Checksums::Verify) {
                records.admit(file, factors)?;
            }
        }
        Ok(records)
    }

    /// Adds the record of a launch that is now complete.
    ///
    /// # Errors
    /// If it differs from the others: it is then moved aside.
    pub(super) fn add(&mut self, name: &str) -> Result<(), Failure> {
        let file = file(&self.folder, name)?;
        file.map_or(Ok(()), |file| {
            self.admit(
                &file,
                read_header(&file, Checksums::Verify)
                    .map_err(Failure::run)?
                    .0,
            )
        })
    }

    fn admit(&mut self, file: &Path, factors: Factors) -> Result<(), Failure> {
        let Some((first, standard)) = &self.standard else {
            self.standard = Some((file.to_owned(), factors));
            return Ok(());
        };
        let Some(factor) = standard.differing(&factors) else {
            return Ok(());
        };
        let differ = RecordError::Differ {
            first: file.to_owned(),
            second: Some(first.clone()),
            factor: factor.to_owned(),
            values: [&factors, standard].map(|factors| factors.get(factor).map(str::to_owned)),
        };
        Err(Failure::Run(match set_aside(file) {
            Ok(aside) => format!(
                "{differ}: moved to {}; the same command line launches it again",
                aside.display()
            ),
            Err(why) => format!("{differ}; it could not be moved aside, so move it by hand: {why}"),
        }))
    }
}

/// Returns true if the record of this launch is complete.
///
/// # Errors
/// If it cannot be read.
pub(super) fn complete(folder: &Path, name: &str) -> Result<bool, Failure> {
    file(folder, name)?.map_or(Ok(false), |file| is_complete(&file).map_err(Failure::run))
}

/// Returns the names of all complete launches of a folder.
///
/// # Errors
/// If a record cannot be read.
pub(super) fn all_complete(folder: &Path) -> Result<HashSet<String>, Failure> {
    let mut names = HashSet::new();
    for (name, file) in files(folder)? {
        if is_complete(&file).map_err(Failure::run)? {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Returns the record of this launch, if it has one.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn file(folder: &Path, name: &str) -> Result<Option<PathBuf>, Failure> {
    Ok(files(folder)?
        .into_iter()
        .find(|(known, _)| known == name)
        .map(|(_, file)| file))
}

/// Returns the records of a folder: names of launches, and files.
///
/// # Errors
/// If it cannot be read.
pub(super) fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    match launch_files(folder) {
        // An error about the folder itself means that it has no records or does not exist yet.
        Err(RecordError::File(FileError::Content { path, .. })) if path == folder => Ok(Vec::new()),
        Err(RecordError::File(FileError::Io { why, .. }))
            if why.kind() == io::ErrorKind::NotFound =>
        {
            Ok(Vec::new())
        }
        found => found.map_err(Failure::run),
    }
}

/// Renames a record and its raw record, so that they no longer count as a launch; overwrites nothing.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let with = |path: &Path, suffix: &str| PathBuf::from(format!("{}{suffix}", path.display()));
    let suffixes = (1..).map(|i| {
        if i == 1 {
            ".differs".to_owned()
        } else {
            format!(".differs-{i}")
        }
    });
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
    Err(io::ErrorKind::AlreadyExists.into())
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
    fn a_record_that_differs_is_moved_aside_and_named() {
        let folder = std::env::temp_dir().join(format!("downbeat-alike-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name);
        let planned = ["launch-002", "launch-001"];
        write(&path("launch-002.csv"), 4);
        fs::write(path("launch-003.csv"), "# downb").unwrap();
        for aside in ["launch-001.csv.differs", "launch-001.csv.differs-2"] {
            write(&path("launch-001.csv"), 8);
            fs::write(path("launch-001.raw.csv"), "raw").unwrap();
            let failure = LaunchRecords::check(&folder, &planned).unwrap_err();
            let Failure::Run(why) = failure else {
                panic!("{failure:?}")
            };
            let said = format!(
                "{}: the factor \"ranks\" is \"8\" here, but \"4\" in {}: moved to {}",
                path("launch-001.csv").display(),
                path("launch-002.csv").display(),
                path(aside).display()
            );
            assert!(why.starts_with(&said), "{why}");
            assert!(path(aside).exists() && path(&aside.replace(".csv", ".raw.csv")).exists());
            assert!(!path("launch-001.csv").exists() && !path("launch-001.raw.csv").exists());
        }
        let mut records = LaunchRecords::check(&folder, &planned).unwrap();
        assert!(
            complete(&folder, "launch-002").unwrap() && !complete(&folder, "launch-003").unwrap()
        );
        assert_eq!(
            all_complete(&folder)
                .unwrap()
                .into_iter()
                .collect::<Vec<_>>(),
            ["launch-002"]
        );
        write(&path("launch-001.csv"), 4);
        records.add("launch-001").unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
