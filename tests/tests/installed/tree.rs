//! The installed tree, and programs that are compiled against it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::MpiLibrary;
use downbeat_launch::{Outcome, all_passed, environment};

const PROGRAMS: &str = "tools/capi/tests/programs";
const C: &str = "-std=c99 -pedantic -Wall -Wextra -Werror -O2";
/// The headers of Open MPI have warnings in C++.
const CPP: &str = "-std=c++11 -pedantic -O2";
const FORTRAN: &str = "-std=gnu -Wall -O2 -fallow-argument-mismatch";
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// An installation that is tested.
pub(crate) struct InstalledTree {
    pub(crate) prefix: PathBuf,
    /// Folder of this test, for programs and what they write.
    pub(crate) built: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    Shared,
    Static,
    /// Without libdownbeat.
    Without,
}

/// Runs a check of this name against the installation.
pub(crate) fn check_installed(name: &str, check_tree: impl FnOnce(&InstalledTree) -> Outcome) {
    check(|| check_tree(&InstalledTree::find(name)?));
}

/// Runs a check in the root of the workspace, where the printed commands work, while no
/// other runs: emulated hosts exist once.
pub(crate) fn check(check: impl FnOnce() -> Outcome) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let moved = env::set_current_dir(&root).map_err(|why| format!("{}: {why}", root.display()));
    if let Err(why) = moved.and_then(|()| check()) {
        panic!("{why}");
    }
}

/// Returns a path for files of tests.
pub(crate) fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Reads a variable that `cargo xtask test` sets.
fn variable(name: &str) -> Result<PathBuf, String> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| format!("{name} is not set; run: cargo xtask test --only libdownbeat"))
}

impl InstalledTree {
    fn find(name: &str) -> Result<Self, String> {
        // Steps of two lanes may compile a program of the same name.
        let built = temporary("installed").join(name.replace(' ', "-"));
        fs::create_dir_all(&built).map_err(|why| format!("{}: {why}", built.display()))?;
        Ok(Self {
            prefix: variable(environment::INSTALLED)?,
            built,
        })
    }

    /// Output of pkg-config.
    fn flags(&self, package: &str, linking: Linking) -> Result<Vec<String>, String> {
        let mut pkg_config = command("pkg-config --cflags --libs");
        if linking == Linking::Static {
            pkg_config.arg("--static");
        }
        let folder = self.prefix.join("lib/pkgconfig");
        let text = shell::read(pkg_config.arg(package).env("PKG_CONFIG_PATH", folder))?;
        let flags = text.split_whitespace().map(str::to_owned);
        Ok(match linking {
            Linking::Shared | Linking::Without => flags.collect(),
            // The linker prefers the shared library where both are found.
            Linking::Static => flags
                .flat_map(|flag| match flag.strip_prefix("-ldownbeat") {
                    Some(rest) => vec![format!("-l:libdownbeat{rest}.a")],
                    None => vec![flag],
                })
                .collect(),
        })
    }

    /// Compiles a program with these options, and returns its path. Its language is that
    /// of its name; programs for MPI are compiled by the compilers of their library.
    pub(crate) fn compile(
        &self,
        source: &str,
        mpi: Option<MpiLibrary>,
        linking: Linking,
        options: &str,
    ) -> Result<PathBuf, String> {
        let [name, language] = [Path::file_name, Path::extension].map(|part| {
            part(Path::new(source))
                .unwrap_or_default()
                .to_string_lossy()
        });
        let (compilers, usual) = match &*language {
            "c" => (["gcc", "mpicc"], C),
            "cpp" => (["g++", "mpicxx"], CPP),
            _ => (["gfortran", "mpif90"], FORTRAN),
        };
        let of = mpi.map_or(String::new(), |library| format!("-{}", library.suffix()));
        let compiler = match mpi {
            Some(library) => format!("{}.{}", compilers[1], library.suffix()),
            None => compilers[0].to_owned(),
        };
        // Without the `=` of options, which `env` takes for a variable.
        let options_of_name = options.replace([' ', '/', '='], "");
        let name = format!("{name}{of}-{linking:?}{options_of_name}");
        let program = self.built.join(name);
        let mut compile = command(&format!("{compiler} {usual} {options}"));
        compile
            .arg(Path::new(PROGRAMS).join(source))
            .arg("-o")
            .arg(&program);
        if linking != Linking::Without {
            let fortran = if usual == FORTRAN { "-fortran" } else { "" };
            compile.args(self.flags(&format!("downbeat{of}{fortran}"), linking)?);
        }
        shell::run(&mut compile)?;
        Ok(program)
    }
}

/// Launcher of programs for an MPI library, whose ranks share cores.
pub(crate) struct Launcher {
    library: MpiLibrary,
    preloaded: Vec<PathBuf>,
}

impl Launcher {
    /// Preloads what lets waiting ranks yield their core, if the library cannot do so
    /// itself.
    pub(crate) fn new(library: MpiLibrary) -> Result<Self, String> {
        let preloaded = match library.yields() {
            true => vec![],
            false => vec![variable(environment::YIELD)?],
        };
        Ok(Self { library, preloaded })
    }

    /// Preloads nothing.
    pub(crate) fn bare(&self) -> Self {
        Self {
            library: self.library,
            preloaded: vec![],
        }
    }

    /// Preloads another library, too.
    pub(crate) fn preloading(&self, path: PathBuf) -> Self {
        Self {
            library: self.library,
            preloaded: self.preloaded.iter().cloned().chain([path]).collect(),
        }
    }

    /// Returns the launcher of this number of ranks.
    pub(crate) fn mpirun(&self, ranks: u32) -> Command {
        let mut mpirun = self.library.oversubscribed_mpirun();
        self.library.preload(&mut mpirun, &self.preloaded);
        mpirun.args(["-np", &ranks.to_string()]);
        mpirun
    }

    /// Runs a program, with each of these numbers of ranks. Rank 0 prints that it passed
    /// its checks.
    pub(crate) fn run(&self, ranks: &[u32], program: &Command) -> Outcome {
        all_passed(ranks.iter().filter_map(|ranks| {
            let mut mpirun = shell::started_by(self.mpirun(*ranks), program);
            let one_job = format!("rank 0 of {ranks}: all checks passed");
            match shell::show_and_read(RUN_LIMIT, &mut mpirun) {
                Ok(output) if output.matches(&one_job).count() == 1 => None,
                Ok(_) => Some(format!("{ranks} ranks: no line `{one_job}`")),
                Err(why) => Some(format!("{ranks} ranks: {why}")),
            }
        }))
    }
}
