//! Records of one folder must have equal factors, and the same hosts if that is wanted: a record that differs is moved aside.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_common::Failure;
use downbeat_files::{Checksums, FileError};
use downbeat_records::{
    HOSTS, Launch, NODES, RecordError, UNEQUAL, is_complete, launch_files, read_binding,
    read_launch,
};

use super::log::say;

/// The records of a folder.
#[derive(Debug)]
pub(super) struct LaunchRecords {
    folder: PathBuf,
    /// True if all launches must run on the same hosts.
    same_hosts: bool,
    /// Conditions that all records must have, with the record that they are from.
    standard: Option<(PathBuf, Launch)>,
    /// True after it was said that launches ran on different hosts or kinds of nodes.
    is_pointed_out: bool,
}

impl LaunchRecords {
    /// Checks the existing records. Those of `planned` launches come first, in their order.
    ///
    /// # Errors
    /// If a record differs from the first one: it is then moved aside.
    pub(super) fn check(
        folder: &Path,
        planned: &[&str],
        same_hosts: bool,
    ) -> Result<Self, Failure> {
        let mut records = Self {
            folder: folder.to_owned(),
            same_hosts,
            standard: None,
            is_pointed_out: false,
        };
        let mut files = files(folder)?;
        files.sort_by_key(|(name, _)| {
            planned
                .iter()
                .position(|launch| launch == name)
                .unwrap_or(planned.len())
        });
        for (_, file) in &files {
            // A record without a group, or even without a header, is ignored: its program will overwrite it.
            if let Ok(Some(launch)) = records.read(file) {
                records.admit(file, launch)?;
            }
        }
        Ok(records)
    }

    /// Adds the record of a launch that is now complete.
    ///
    /// # Errors
    /// If it differs from the others: it is then moved aside.
    pub(super) fn add(&mut self, name: &str) -> Result<(), Failure> {
        let Some(file) = file(&self.folder, name)? else {
            return Ok(());
        };
        let launch = self.read(&file).map_err(Failure::run)?;
        launch.map_or(Ok(()), |launch| self.admit(&file, launch))
    }

    /// Reads the conditions of a launch, unless it binds no other. Hosts on which a launch was continued are not in its header.
    fn read(&self, file: &Path) -> Result<Option<Launch>, RecordError> {
        if self.same_hosts {
            let launch = read_launch(file, Checksums::Verify)?;
            return Ok(launch.binds().then_some(launch));
        }
        read_binding(file, Checksums::Verify)
    }

    fn admit(&mut self, file: &Path, launch: Launch) -> Result<(), Failure> {
        let differ = match &self.standard {
            Some((first, standard)) => differing_factor(file, &launch, first, standard),
            None => None,
        };
        let differ = differ.or_else(|| self.other_hosts(file, &launch));
        let Some(differ) = differ else {
            self.point_out(file, &launch);
            // Its observations are not needed.
            let launch = Launch {
                groups: Vec::new(),
                ..launch
            };
            self.standard
                .get_or_insert_with(|| (file.to_owned(), launch));
            return Ok(());
        };
        Err(Failure::Run(match set_aside(file) {
            Ok(aside) => format!(
                "{differ}: moved to {}; the same command line launches it again",
                aside.display()
            ),
            Err(why) => format!("{differ}; it could not be moved aside, so move it by hand: {why}"),
        }))
    }

    /// Describes the hosts of a launch if they must be the same and are others than those of the first launch, or than those where it
    /// began itself.
    fn other_hosts(&self, file: &Path, launch: &Launch) -> Option<String> {
        if !self.same_hosts {
            return None;
        }
        let path = file.display();
        let hosts = launch.distinct(HOSTS);
        let Some(begun_on) = hosts.first() else {
            return Some(format!(
                "{path}: states no hosts, which --same-hosts compares"
            ));
        };
        let first = self.standard.as_ref().map(|(_, first)| first);
        let expected = first.and_then(|first| first.distinct(HOSTS).first().copied());
        let expected = expected.unwrap_or(begun_on);
        (hosts != [expected]).then(|| {
            format!(
                "{path}: ran on the hosts {}, but --same-hosts demands {expected}",
                hosts.join(", then ")
            )
        })
    }

    /// Says once that launches ran on different hosts or kinds of nodes, or one launch on several kinds.
    fn point_out(&mut self, file: &Path, launch: &Launch) {
        if self.is_pointed_out {
            return;
        }
        let path = file.display();
        let unequal = launch
            .distinct(NODES)
            .into_iter()
            .find(|kinds| kinds.starts_with(UNEQUAL));
        let said = if let Some(kinds) = unequal {
            Some(format!("{path}: the nodes are {kinds}"))
        } else if let Some((first, standard)) = &self.standard {
            let differs = |fact: &str| {
                let [here, there] =
                    [launch, standard].map(|launch| launch.distinct(fact).join(", then "));
                (here != there && !here.is_empty())
                    .then(|| format!("{path}: ran on {here}, but {} on {there}", first.display()))
            };
            differs(NODES).or_else(|| differs(HOSTS))
        } else {
            None
        };
        if let Some(said) = said {
            say(&format!(
                "downbeat: {said}; --same-hosts would refuse other hosts"
            ));
            self.is_pointed_out = true;
        }
    }
}

/// Describes a factor in which a launch differs from the first one.
fn differing_factor(
    file: &Path,
    launch: &Launch,
    first: &Path,
    standard: &Launch,
) -> Option<String> {
    let factor = standard.factors.differing(&launch.factors)?;
    let differ = RecordError::Differ {
        first: file.to_owned(),
        second: Some(first.to_owned()),
        factor: factor.to_owned(),
        values: [launch, standard].map(|launch| launch.factors.get(factor).map(str::to_owned)),
    };
    Some(differ.to_string())
}

/// Returns true if a file of a folder is a record of measurements, or may be one.
fn may_bind(file: &Path) -> bool {
    read_binding(file, Checksums::Verify).map_or(true, |launch| launch.is_some())
}

/// Returns a record of a folder that binds the launches to come; one that cannot be read may do so.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn binding(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let mut files = files(folder)?.into_iter().map(|(_, file)| file);
    Ok(files.find(|file| may_bind(file)))
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
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
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
    use downbeat_files::testing::seal_record;

    fn write(path: &Path, ranks: u32) {
        let text = format!(
            "# downbeat launch 1\n# factor ranks = {ranks}\noperation,bytes,ranks,call,state,nanos\n# complete\n"
        );
        fs::write(path, seal_record(&text)).unwrap();
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
            let failure = LaunchRecords::check(&folder, &planned, false).unwrap_err();
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
        let mut records = LaunchRecords::check(&folder, &planned, false).unwrap();
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

    #[test]
    fn hosts_may_differ_unless_they_must_be_the_same() {
        let folder = std::env::temp_dir().join(format!("downbeat-hosts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, facts: &str, end: &str| {
            let head = "# downbeat launch 1\n# factor ranks = 4\n";
            let columns = "operation,bytes,ranks,call,state,nanos\n";
            let first = "a,1,4,0,valid,7\n# end a,1,4 valid=1 late=0 long=0 drifted=0 min=7\n";
            let text = format!("{head}{facts}{columns}{first}{end}");
            fs::write(folder.join(format!("{name}.csv")), seal_record(&text)).unwrap();
        };
        let begun = |same_hosts| LaunchRecords::check(&folder, &["1"], same_hosts).unwrap();
        write("1", "# fact hosts = a b\n", "# complete\n");
        write("2", "# fact hosts = c\n", "# complete\n");
        assert!(begun(false).is_pointed_out);

        let part = "# fact hosts (2) = c\nb,1,4,0,valid,7\n# end b,1,4 valid=1 late=0 long=0 drifted=0 min=7\n";
        for (facts, end, why) in [
            (
                "# fact hosts = c\n",
                "",
                "ran on the hosts c, but --same-hosts demands a b",
            ),
            (
                "# fact hosts = a b\n",
                part,
                "ran on the hosts a b, then c, but",
            ),
            ("", "", "states no hosts"),
        ] {
            fs::remove_file(folder.join("2.csv")).unwrap();
            let mut records = begun(true);
            write("2", facts, end);
            let failure = records.add("2").unwrap_err();
            assert!(
                matches!(&failure, Failure::Run(said) if said.contains(why)),
                "{failure:?}"
            );
            // It was moved aside.
            assert!(!folder.join("2.csv").exists());
            write("2", facts, end);
            assert!(LaunchRecords::check(&folder, &["1"], true).is_err());
            write("2", "# fact hosts = a b\n", "");
            begun(true).add("2").unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
