//! Command line of xtask.

use std::path::{Component, Path, PathBuf};

use downbeat_launch::mpi::MpiLibrary;

pub(crate) const HELP: &str = "\
Checks and benchmarks of Downbeat.

Usage: cargo xtask setup [--yes]
       cargo xtask test [--quick | --long] [--only TEXT] [--yes] [--disturbed]
       cargo xtask bench [--gate] [--criterion] [--only TEXT]
       cargo xtask fuzz TARGET [--runs NUMBER]
       cargo xtask install --prefix DIR [--libdir DIR] [--destdir DIR] [--mpi LIBRARY]... [--fortran]
       cargo xtask package KIND

  setup        installs the Debian packages and the parts of the Rust toolchain that the
               checks need, if it may (root or passwordless sudo), or says what to install;
               asks before it installs packages if a person can answer
    --yes        do not ask; CI=true, or standard input that is not a terminal, does the same

  test         setup, then every check that the project promises: format, lints, documentation,
               tests, examples, no_std, loom, fuzz targets for some seconds, and MPI programs
               under Open MPI and MPICH; independent steps run side by side
    --quick      what a developer runs often, in less than 5 minutes from nothing and without
                 system packages: format, lints, tests with fewer random cases, no_std
    --long       also what takes long: every set of features, tests without MPI, benchmarks,
                 more ranks, Miri, sanitizers, valgrind, Slurm, a minute of each fuzz target
    --only TEXT  only the steps whose name contains the text, or all steps of a lane:
                 \"lane compile\", \"lane compute\", \"lane ranks\" or \"lane wait\"
    --yes        do not ask before packages are installed
    --disturbed  keep each core from the steps for 5 to 120 ms at a time, by processes of
                 real-time priority, to find tests that need an idle machine; needs root

  bench        the tables of ratios, some of them under Open MPI and MPICH
    --gate       fail if a promised bound is missed
    --criterion  also the criterion benchmarks of every crate
    --only TEXT  only the tables whose name contains the text

  fuzz         one target, until it finds something or is ended; a wrong name lists all
    --runs NUMBER  end after this number of inputs

  install      builds libdownbeat, for C and C++, and installs it with headers, for pkg-config and CMake;
               also the program downbeat, its man pages, and its completions for bash, zsh and fish
    --prefix DIR   absolute path below which programs will find them
    --libdir DIR   folder of libraries below the prefix, as lib/x86_64-linux-gnu on Debian [default: lib]
    --destdir DIR  write below this folder instead of the root, as packagers do
    --mpi LIBRARY  also libdownbeat_mpi and the program downbeat-mpi.LIBRARY for this MPI library,
                   openmpi or mpich, by its mpicc.LIBRARY; downbeat-mpi is that for the first one
    --fortran      also the modules of Fortran, by gfortran and mpif90.LIBRARY

  package      builds a package of the program downbeat, with man pages and completions
    static       an archive for any Linux of this processor; needs the target that
                 `rustup target add x86_64-unknown-linux-musl` installs
    deb          a package for Debian; needs cargo-deb

  -h, --help   print this text

Each step prints the exact commands it runs; `test` prints the output of a step when it ends.
The last line counts the steps: `21 passed, 0 failed`.
The exit code is 0 if all passed, 1 if one failed, 2 if the arguments are wrong.

Example: cargo xtask test --quick
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup {
        yes: bool,
    },
    Test {
        depth: Depth,
        only: String,
        yes: bool,
        disturbed: bool,
    },
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

impl Default for Installation {
    fn default() -> Self {
        Self {
            prefix: PathBuf::new(),
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
    const NAMES: [(Self, &str); 3] = [
        (Self::Quick, "quick"),
        (Self::Normal, "normal"),
        (Self::Long, "long"),
    ];

    /// Returns its name between the processes of a test.
    pub(crate) fn name(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(depth, _)| *depth == self)
            .map_or("", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, known)| *known == name)
            .map(|(depth, _)| *depth)
    }
}

pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Task, String> {
    let args: Vec<String> = args.collect();
    let mut words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words.iter().any(|&word| word == "--help" || word == "-h") {
        return Ok(Task::Help);
    }
    // Every name contains the empty text.
    let mut only = String::new();
    if let Some(at) = words.iter().position(|&word| word == "--only") {
        only = words
            .get(at + 1)
            .ok_or("`--only` needs a text")?
            .to_string();
        words.drain(at..=at + 1);
    }
    match words.as_slice() {
        [] => Err("nothing to do".into()),
        ["setup", options @ ..] => {
            let [yes] = switches("setup", options, ["--yes"])?;
            Ok(Task::Setup { yes })
        }
        ["test", options @ ..] => parse_test(options, only),
        ["step", depth, name, verdict] => Ok(Task::Step {
            depth: Depth::from_name(depth).ok_or(format!("unknown depth `{depth}`"))?,
            name: (*name).into(),
            verdict: verdict.into(),
        }),
        ["bursts", core] => Ok(Task::Bursts {
            core: core.parse().map_err(|_| "`bursts` needs a core")?,
        }),
        ["bench", options @ ..] => {
            let [gate, criterion] = switches("bench", options, ["--gate", "--criterion"])?;
            Ok(Task::Bench {
                gate,
                criterion,
                only,
            })
        }
        ["fuzz"] => Err("`fuzz` needs the name of a target".into()),
        ["fuzz", target] => Ok(Task::Fuzz {
            target: (*target).into(),
            runs: None,
        }),
        ["fuzz", target, "--runs", runs] => Ok(Task::Fuzz {
            target: (*target).into(),
            runs: Some(runs.parse().map_err(|_| "`--runs` needs a number")?),
        }),
        ["fuzz", _, other, ..] => Err(format!("`fuzz` has no option `{other}`")),
        ["install", options @ ..] => installation(options).map(Task::Install),
        ["package", "static"] => Ok(Task::Package(PackageKind::Static)),
        ["package", "deb"] => Ok(Task::Package(PackageKind::Debian)),
        ["package", ..] => Err("`package` needs one kind: static or deb".into()),
        [other, ..] => Err(format!("unknown task `{other}`")),
    }
}

fn parse_test(options: &[&str], only: String) -> Result<Task, String> {
    let known = ["--quick", "--long", "--yes", "--disturbed"];
    let [quick, long, yes, disturbed] = switches("test", options, known)?;
    let depth = match (quick, long) {
        (true, true) => return Err("`--quick` cannot be used with `--long`".into()),
        (true, false) => Depth::Quick,
        (false, true) => Depth::Long,
        (false, false) => Depth::Normal,
    };
    Ok(Task::Test {
        depth,
        only,
        yes,
        disturbed,
    })
}

fn installation(options: &[&str]) -> Result<Installation, String> {
    let mut wanted = Installation::default();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut value = || options.next().ok_or(format!("`{option}` needs a value"));
        match *option {
            "--fortran" => wanted.fortran = true,
            "--prefix" => wanted.prefix = value()?.into(),
            "--libdir" => {
                let folder = *value()?;
                let is_below = Path::new(folder)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)));
                if folder.is_empty() || !is_below {
                    return Err(format!(
                        "`--libdir {folder}`: this is no folder below the prefix"
                    ));
                }
                wanted.libdir = folder.trim_end_matches('/').to_owned();
            }
            "--destdir" => wanted.destdir = Some(value()?.into()),
            "--mpi" => {
                let name = value()?;
                let library = MpiLibrary::with_suffix(name);
                wanted.mpi.push(library.ok_or(format!(
                    "`--mpi {name}`: the MPI libraries are openmpi and mpich"
                ))?);
            }
            _ => return Err(format!("`install` has no option `{option}`")),
        }
    }
    if wanted.prefix.is_absolute() {
        Ok(wanted)
    } else {
        Err("`install` needs `--prefix` and an absolute path".into())
    }
}

/// Tells for each of the known switches if it is among the options.
fn switches<const N: usize>(
    task: &str,
    options: &[&str],
    known: [&str; N],
) -> Result<[bool; N], String> {
    match options.iter().find(|option| !known.contains(option)) {
        Some(unknown) => Err(format!("`{task}` has no option `{unknown}`")),
        None => Ok(known.map(|switch| options.contains(&switch))),
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
            Ok(Task::Test {
                depth,
                only: only.to_owned(),
                yes: false,
                disturbed: false,
            })
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
            Ok(Task::Test {
                depth: Depth::Normal,
                only: "fmt".to_owned(),
                yes: true,
                disturbed: true,
            })
        );
        for (depth, name) in Depth::NAMES {
            let step = parsed(&format!("step {} fmt 1.verdict", depth.name()));
            assert!(
                matches!(step, Ok(Task::Step { depth: found, .. }) if found == depth),
                "{name}"
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
