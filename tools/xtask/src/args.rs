//! Command line of xtask.

use std::path::{Component, Path, PathBuf};

use downbeat_launch::mpi::MpiLibrary;

pub(crate) const HELP: &str = include_str!("help.txt");

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup {
        yes: bool,
    },
    Test(TestRun),
    /// One step of a test, for the process that runs them all.
    Step {
        depth: Depth,
        name: String,
        verdict: PathBuf,
    },
    /// Bursts on one core, for a disturbed test.
    Bursts {
        core: u64,
    },
    Bench {
        gate: bool,
        criterion: bool,
        only: String,
    },
    Fuzz {
        target: String,
        runs: Option<u64>,
    },
    Install(Installation),
    Package(PackageKind),
}

/// A run of all steps, or of some.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestRun {
    pub(crate) depth: Depth,
    /// Text in the names of the steps, or the label of their lane.
    pub(crate) only: String,
    /// True if nobody is asked before packages are installed.
    pub(crate) yes: bool,
    pub(crate) disturbed: bool,
}

/// Kind of a package of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackageKind {
    Static,
    Debian,
}

/// An installation of libdownbeat and the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    pub(crate) prefix: PathBuf,
    /// Folder of libraries below the prefix.
    pub(crate) libdir: String,
    pub(crate) destdir: Option<PathBuf>,
    /// MPI libraries to build for.
    pub(crate) mpi: Vec<MpiLibrary>,
    /// True for the modules of Fortran.
    pub(crate) fortran: bool,
}

impl Installation {
    /// An installation without MPI and Fortran.
    pub(crate) fn new(prefix: impl Into<PathBuf>) -> Self {
        Self {
            prefix: prefix.into(),
            libdir: "lib".to_owned(),
            destdir: None,
            mpi: vec![],
            fortran: false,
        }
    }
}

/// Extent of `cargo xtask test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// No system packages.
    Quick,
    Normal,
    Long,
}

impl Depth {
    /// Returns the option of `test` that selects it.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            Self::Quick => Some("--quick"),
            Self::Normal => None,
            Self::Long => Some("--long"),
        }
    }
}

pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Task, String> {
    let mut words = Words(args.collect());
    if words.take("--help") || words.take("-h") {
        return Ok(Task::Help);
    }
    let name = words.take_first().ok_or("nothing to do")?;
    let task = match name.as_str() {
        "setup" => Task::Setup {
            yes: words.take("--yes"),
        },
        "test" => Task::Test(TestRun {
            depth: words.take_depth()?,
            // Every name contains the empty text.
            only: words.take_value("--only")?.unwrap_or_default(),
            yes: words.take("--yes"),
            disturbed: words.take("--disturbed"),
        }),
        "step" => Task::Step {
            depth: words.take_depth()?,
            name: words.take_first().ok_or("`step` needs a name")?,
            verdict: words.take_first().ok_or("`step` needs a file")?.into(),
        },
        "bursts" => Task::Bursts {
            core: number(words.take_first()).ok_or("`bursts` needs a core")?,
        },
        "bench" => Task::Bench {
            gate: words.take("--gate"),
            criterion: words.take("--criterion"),
            only: words.take_value("--only")?.unwrap_or_default(),
        },
        "fuzz" => {
            let runs = words.take_value("--runs")?;
            let runs = runs.map(|runs| number(Some(runs)).ok_or("`--runs` needs a number"));
            Task::Fuzz {
                runs: runs.transpose()?,
                target: words
                    .take_first()
                    .ok_or("`fuzz` needs the name of a target")?,
            }
        }
        "install" => Task::Install(installation(&mut words)?),
        "package" => match words.take_first().as_deref() {
            Some("static") => Task::Package(PackageKind::Static),
            Some("deb") => Task::Package(PackageKind::Debian),
            _ => return Err("`package` needs one kind: static or deb".to_owned()),
        },
        other => return Err(format!("unknown task `{other}`")),
    };
    match words.take_first() {
        Some(unknown) => Err(format!("`{name}` has no option `{unknown}`")),
        None => Ok(task),
    }
}

fn number(word: Option<String>) -> Option<u64> {
    word?.parse().ok()
}

fn installation(words: &mut Words) -> Result<Installation, String> {
    let mut wanted = Installation::new(words.take_value("--prefix")?.unwrap_or_default());
    wanted.fortran = words.take("--fortran");
    wanted.destdir = words.take_value("--destdir")?.map(PathBuf::from);
    if let Some(folder) = words.take_value("--libdir")? {
        let mut parts = Path::new(&folder).components();
        let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
        if folder.is_empty() || !is_below {
            return Err(format!(
                "`--libdir {folder}`: this is no folder below the prefix"
            ));
        }
        wanted.libdir = folder.trim_end_matches('/').to_owned();
    }
    while let Some(name) = words.take_value("--mpi")? {
        let library = MpiLibrary::with_suffix(&name);
        wanted.mpi.push(library.ok_or(format!(
            "`--mpi {name}`: the MPI libraries are openmpi and mpich"
        ))?);
    }
    match words.0.first() {
        None if !wanted.prefix.is_absolute() => {
            Err("`install` needs `--prefix` and an absolute path".to_owned())
        }
        _ => Ok(wanted),
    }
}

/// Words of the command line that are not read yet.
struct Words(Vec<String>);

impl Words {
    fn take_first(&mut self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// Takes a switch; returns true if it was there.
    fn take(&mut self, switch: &str) -> bool {
        let place = self.0.iter().position(|word| word == switch);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// Takes an option with its value.
    fn take_value(&mut self, option: &str) -> Result<Option<String>, String> {
        let Some(place) = self.0.iter().position(|word| word == option) else {
            return Ok(None);
        };
        if place + 1 == self.0.len() {
            return Err(format!("`{option}` needs a value"));
        }
        Ok(self.0.drain(place..place + 2).nth(1))
    }

    fn take_depth(&mut self) -> Result<Depth, String> {
        match (self.take("--quick"), self.take("--long")) {
            (true, true) => Err("`--quick` cannot be used with `--long`".to_owned()),
            (true, false) => Ok(Depth::Quick),
            (false, true) => Ok(Depth::Long),
            (false, false) => Ok(Depth::Normal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn tasks_and_their_switches() {
        let test = |depth, only: &str| {
            Ok(Task::Test(TestRun {
                depth,
                only: only.to_owned(),
                yes: false,
                disturbed: false,
            }))
        };
        let bench = |gate, criterion| {
            Ok(Task::Bench {
                gate,
                criterion,
                only: String::new(),
            })
        };
        assert_eq!(parsed("setup"), Ok(Task::Setup { yes: false }));
        assert_eq!(parsed("setup --yes"), Ok(Task::Setup { yes: true }));
        assert_eq!(parsed("test"), test(Depth::Normal, ""));
        assert_eq!(parsed("test --long"), test(Depth::Long, ""));
        assert_eq!(
            parsed("test --only MPICH --quick"),
            test(Depth::Quick, "MPICH")
        );
        assert_eq!(
            parsed("test --yes --disturbed --only fmt"),
            Ok(Task::Test(TestRun {
                depth: Depth::Normal,
                only: "fmt".to_owned(),
                yes: true,
                disturbed: true,
            }))
        );
        for depth in [Depth::Quick, Depth::Normal, Depth::Long] {
            let option = depth.option().unwrap_or_default();
            let step = parsed(&format!("step fmt 1.verdict {option}"));
            assert!(
                matches!(step, Ok(Task::Step { depth: found, .. }) if found == depth),
                "{depth:?}"
            );
        }
        assert!(parsed("test --only").is_err());
        assert!(parsed("test --quick --long").is_err());
        assert_eq!(parsed("bench --criterion"), bench(false, true));
        assert_eq!(parsed("bench --criterion --gate"), bench(true, true));
        assert_eq!(parsed("bench --help"), Ok(Task::Help));
        let fuzz = |runs| Task::Fuzz {
            target: "trace".into(),
            runs,
        };
        assert_eq!(parsed("fuzz trace"), Ok(fuzz(None)));
        assert_eq!(parsed("fuzz trace --runs 9"), Ok(fuzz(Some(9))));
        let package = |kind| Ok(Task::Package(kind));
        assert_eq!(parsed("package static"), package(PackageKind::Static));
        assert_eq!(parsed("package deb"), package(PackageKind::Debian));
    }

    #[test]
    fn an_installation_needs_a_prefix() {
        let wanted = Installation {
            prefix: "/opt/downbeat".into(),
            libdir: "lib/x86_64-linux-gnu".into(),
            destdir: Some("tree".into()),
            mpi: vec![MpiLibrary::with_suffix("mpich").unwrap()],
            fortran: true,
        };
        assert_eq!(
            parsed(
                "install --mpi mpich --fortran --destdir tree --prefix /opt/downbeat --libdir lib/x86_64-linux-gnu/"
            ),
            Ok(Task::Install(wanted))
        );
        for (line, why) in [
            ("install", "`install` needs `--prefix` and an absolute path"),
            (
                "install --prefix opt",
                "`install` needs `--prefix` and an absolute path",
            ),
            ("install --prefix", "`--prefix` needs a value"),
            (
                "install --prefix /opt --libdir /usr/lib",
                "`--libdir /usr/lib`: this is no folder below the prefix",
            ),
            (
                "install --mpi lam",
                "`--mpi lam`: the MPI libraries are openmpi and mpich",
            ),
            ("install --strip yes", "`install` has no option `--strip`"),
        ] {
            assert_eq!(parsed(line), Err(why.to_owned()));
        }
    }

    /// Tests of the documents do not run this line, and expect that it installs what was
    /// installed before.
    #[test]
    fn the_line_of_the_documents_is_understood() {
        let line = "install --prefix $HOME/downbeat --mpi openmpi";
        let wanted = Installation {
            mpi: vec![MpiLibrary::with_suffix("openmpi").unwrap()],
            ..Installation::new("/home/me/downbeat")
        };
        assert_eq!(
            parsed(&line.replace("$HOME", "/home/me")),
            Ok(Task::Install(wanted))
        );
    }

    #[test]
    fn unknown_words_are_named() {
        assert_eq!(parsed("tset"), Err("unknown task `tset`".into()));
        assert_eq!(
            parsed("test --quik"),
            Err("`test` has no option `--quik`".into())
        );
        assert_eq!(
            parsed("test --gate"),
            Err("`test` has no option `--gate`".into())
        );
        assert!(parsed("").is_err());
        assert!(parsed("fuzz").is_err());
        assert!(parsed("package").is_err());
        assert!(parsed("package rpm").is_err());
        assert!(parsed("fuzz trace --runs many").is_err());
        assert_eq!(
            parsed("fuzz trace --run 9"),
            Err("`fuzz` has no option `--run`".into())
        );
    }
}
