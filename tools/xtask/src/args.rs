//! Command line of xtask.

use std::path::{Component, Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use downbeat_launch::environment;
use downbeat_launch::mpi::MpiLibrary;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = true,
    about = "Checks and benchmarks of Downbeat",
    after_help = "Each step prints the exact commands it runs; `test` prints the output of a step when it ends.\n\
                  The last line counts the steps: `21 passed, 0 failed`.\n\
                  The exit code is 0 if all passed, 1 if one failed, 2 if the arguments are wrong.\n\n\
                  Example: cargo xtask test --quick"
)]
pub(crate) struct XtaskArguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum Task {
    /// Install the Debian packages and the parts of the Rust toolchain that the checks
    /// need
    #[command(
        after_help = "Without root or passwordless sudo, it says what to install. It asks before it installs packages if \
                      a person can answer."
    )]
    Setup {
        /// Do not ask; CI=true, or standard input that is not a terminal, does the same
        #[arg(long)]
        yes: bool,
    },
    /// Set up, then run every check that the project promises
    #[command(
        after_help = "Checks: format, lints, documentation, tests, examples, no_std, loom, fuzz targets for some seconds, \
                      and MPI programs under Open MPI and MPICH. Independent steps run side by side."
    )]
    Test(TestRun),
    /// Run one step of a test, for the process that runs them all
    #[command(hide = true)]
    Step {
        #[command(flatten)]
        extent: TestExtent,
        name: String,
        verdict: PathBuf,
    },
    /// Run bursts on one core, for a disturbed test
    #[command(hide = true)]
    Bursts { core: u64 },
    /// Print the tables of ratios, some of them under Open MPI and MPICH
    Bench {
        /// Fail if a promised bound is missed
        #[arg(long)]
        gate: bool,
        /// Also run the criterion benchmarks of every crate
        #[arg(long)]
        criterion: bool,
        /// Only the tables whose name contains the text
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        only: String,
    },
    /// Run one target until it finds something or is ended; a wrong name lists all
    Fuzz {
        target: String,
        /// End after this number of inputs
        #[arg(long, value_name = "NUMBER")]
        runs: Option<u64>,
    },
    /// Build libdownbeat and the programs, and install them
    #[command(
        after_help = "libdownbeat is for C and C++, with headers, for pkg-config and CMake. The program downbeat \
                      has its man pages, and its completions for bash, zsh and fish."
    )]
    Install(Installation),
    /// Build a package of the program downbeat, with man pages and completions
    Package { kind: PackageKind },
}

/// A run of all steps, or of some.
#[derive(Args, Debug, PartialEq, Eq)]
pub(crate) struct TestRun {
    #[command(flatten)]
    pub(crate) extent: TestExtent,
    /// Only the steps whose name contains the text, or all steps of a lane: "lane
    /// compile", "lane compute", "lane ranks" or "lane wait"
    // Every name contains the empty text.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) only: String,
    /// Do not ask before packages are installed
    #[arg(long)]
    pub(crate) yes: bool,
    /// Keep each core from the steps for 5 to 120 ms at a time, by processes of real-time
    /// priority, to find tests that need an idle machine; needs root
    #[arg(long)]
    pub(crate) disturbed: bool,
}

/// Options for the extent of a run.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TestExtent {
    /// Steps that a developer runs often, without system packages: format, lints, tests
    /// with fewer random cases, no_std
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Also what takes long: every set of features, tests without MPI, benchmarks, more
    /// ranks, Miri, sanitizers, valgrind, Slurm, a minute of each fuzz target
    #[arg(long)]
    long: bool,
}

impl TestExtent {
    pub(crate) fn depth(self) -> Depth {
        match self {
            Self { quick: true, .. } => Depth::Quick,
            Self { long: true, .. } => Depth::Long,
            _ => Depth::Normal,
        }
    }
}

/// Kind of a package of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackageKind {
    /// An archive for any Linux of this processor; needs the target that
    /// `rustup target add x86_64-unknown-linux-musl` installs
    Static,
    /// A package for Debian; needs cargo-deb
    #[value(name = "deb")]
    Debian,
}

/// An installation of libdownbeat and the programs.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    /// Absolute path below which programs will find them
    #[arg(long, value_name = "DIR", value_parser = absolute_path)]
    pub(crate) prefix: PathBuf,
    /// Folder of libraries below the prefix, as lib/x86_64-linux-gnu on Debian
    #[arg(long, value_name = "DIR", default_value = "lib", value_parser = folder_below)]
    pub(crate) libdir: String,
    /// Write below this folder instead of the root, as packagers do
    #[arg(long, value_name = "DIR")]
    pub(crate) destdir: Option<PathBuf>,
    /// Also libdownbeat_mpi and the program downbeat-mpi.LIBRARY for this MPI library,
    /// openmpi or mpich, by its mpicc.LIBRARY; downbeat-mpi is that for the first one
    #[arg(long, value_name = "LIBRARY", value_parser = mpi_library)]
    pub(crate) mpi: Vec<MpiLibrary>,
    /// Also the modules of Fortran, by gfortran and mpif90.LIBRARY
    #[arg(long)]
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

    /// Returns the variable that tells tests about a long run.
    pub(crate) fn variable(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Long).then_some((environment::LONG, "1"))
    }
}

fn absolute_path(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    path.is_absolute()
        .then_some(path)
        .ok_or("this is no absolute path")
}

fn folder_below(text: &str) -> Result<String, &'static str> {
    let mut parts = Path::new(text).components();
    let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
    (is_below && !text.is_empty())
        .then(|| text.trim_end_matches('/').to_owned())
        .ok_or("this is no folder below the prefix")
}

fn mpi_library(text: &str) -> Result<MpiLibrary, &'static str> {
    MpiLibrary::with_suffix(text).ok_or("the MPI libraries are openmpi and mpich")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        let parsed = XtaskArguments::try_parse_from(words);
        parsed.map(|all| all.task).map_err(|why| why.to_string())
    }

    fn extent(depth: Depth) -> TestExtent {
        TestExtent {
            quick: depth == Depth::Quick,
            long: depth == Depth::Long,
        }
    }

    #[test]
    fn tasks_and_their_switches() {
        let test = |depth, only: &str| {
            Ok(Task::Test(TestRun {
                extent: extent(depth),
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
                extent: extent(Depth::Normal),
                only: "fmt".to_owned(),
                yes: true,
                disturbed: true,
            }))
        );
        for depth in [Depth::Quick, Depth::Normal, Depth::Long] {
            let option = depth.option().unwrap_or_default();
            let step = parsed(&format!("step fmt 1.verdict {option}"));
            assert!(
                matches!(step, Ok(Task::Step { extent, .. }) if extent.depth() == depth),
                "{depth:?}"
            );
        }
        assert!(parsed("test --only").is_err());
        assert!(parsed("test --quick --long").is_err());
        assert_eq!(parsed("bench --criterion"), bench(false, true));
        assert_eq!(parsed("bench --criterion --gate"), bench(true, true));
        let help = parsed("bench --help").unwrap_err();
        assert!(help.contains("Print the tables of ratios"), "{help}");
        let fuzz = |runs| Task::Fuzz {
            target: "trace".into(),
            runs,
        };
        assert_eq!(parsed("fuzz trace"), Ok(fuzz(None)));
        assert_eq!(parsed("fuzz trace --runs 9"), Ok(fuzz(Some(9))));
        let package = |kind| Ok(Task::Package { kind });
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
        let usual = Installation::new("/opt");
        assert_eq!(parsed("install --prefix /opt"), Ok(Task::Install(usual)));
        for (line, culprit, why) in [
            ("install", "--prefix <DIR>", "required"),
            (
                "install --prefix opt",
                "'opt' for '--prefix <DIR>'",
                "this is no absolute path",
            ),
            ("install --prefix", "--prefix <DIR>", "a value is required"),
            (
                "install --prefix /opt --libdir /usr/lib",
                "'/usr/lib' for '--libdir <DIR>'",
                "this is no folder below the prefix",
            ),
            (
                "install --prefix /opt --mpi lam",
                "'lam' for '--mpi <LIBRARY>'",
                "the MPI libraries are openmpi and mpich",
            ),
            ("install --strip yes", "'--strip'", "unexpected argument"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(culprit) && error.contains(why), "{error}");
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
        for (line, culprit) in [
            ("tset", "unrecognized subcommand 'tset'"),
            ("test --quik", "'--quik'"),
            ("test --gate", "'--gate'"),
            ("fuzz trace --run 9", "'--run'"),
            ("fuzz trace --runs many", "'many'"),
            ("package rpm", "'rpm'"),
            ("package", "<KIND>"),
            ("fuzz", "<TARGET>"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(culprit), "{error}");
        }
        assert!(parsed("").is_err());
    }
}
