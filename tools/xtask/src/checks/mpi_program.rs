//! The tests of the MPI program, which `downbeat-tests` holds, under both MPI libraries.

use std::fs;
use std::process::Command;

use downbeat_launch::command as shell;
use downbeat_launch::environment;
use downbeat_launch::mpi::{MPICH, OPEN_MPI};

use crate::args::Depth;
use crate::mpi_builds::{MPI_PROGRAM, programs, yielding};
use crate::steps::{Step, side_by_side};
use crate::workspace::Workspace;

/// The test target that starts jobs of the MPI program, and the list of its modules.
pub(crate) const MPI_PROGRAM_TESTS: &str = "mpi_program";
const MODULES: &str = "tests/tests/mpi_program/main.rs";

/// Module of helpers.
const SHARED: &str = "job";

/// Modules that are run for Open MPI alone. Of MPICH, the launcher tends to hang over TCP with three ranks and more, and EZTrace is not
/// built for it.
const OPEN_MPI_ONLY: [&str; 3] = ["eztrace", "several_hosts", BATCH_JOBS];

/// Module that runs the programs of both libraries on the same emulated hosts.
const BATCH_JOBS: &str = "batch_jobs";

/// A step for each module of the tests.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    match modules() {
        Ok(modules) => modules
            .into_iter()
            .map(|module| step(workspace, module, depth))
            .collect(),
        Err(why) => vec![Step::new("MPI program", || Err(why))],
    }
}

fn modules() -> Result<Vec<String>, String> {
    let main = fs::read_to_string(MODULES).map_err(|why| format!("{MODULES}: {why}"))?;
    let modules = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let modules: Vec<String> = modules
        .filter(|module| *module != SHARED)
        .map(str::to_owned)
        .collect();
    if modules.is_empty() {
        Err(format!("{MODULES} declares no module"))
    } else {
        Ok(modules)
    }
}

/// Runs a module under both libraries side by side: the jobs wait for their launchers most of the time.
fn step(workspace: &Workspace, module: String, depth: Depth) -> Step<'_> {
    Step::new(format!("MPI program: {module}"), move || {
        let downbeat = programs(OPEN_MPI, workspace)?.executable("downbeat")?;
        let libraries = [OPEN_MPI, MPICH].into_iter();
        let is_for_both = !OPEN_MPI_ONLY.contains(&&*module);
        let libraries = libraries.filter(|library| *library == OPEN_MPI || is_for_both);
        let tests = libraries.map(|library| {
            let programs = programs(library, workspace)?;
            let mut tests = Command::new(programs.executable(MPI_PROGRAM_TESTS)?);
            tests
                .arg(format!("{module}::"))
                .env(environment::LIBRARY, library.suffix())
                .env(environment::MPI_PROGRAM, programs.executable(MPI_PROGRAM)?)
                .env(environment::PROGRAM, &downbeat);
            if module == BATCH_JOBS {
                let mpich = self::programs(MPICH, workspace)?;
                tests.env(environment::MPICH_PROGRAM, mpich.executable(MPI_PROGRAM)?);
            }
            if let Some(library) = yielding(library, &programs)? {
                tests.env(environment::YIELD, library);
            }
            if depth == Depth::Long {
                tests.env(environment::LONG, "1");
            }
            Ok((library, tests))
        });
        let tests: Vec<_> = tests.collect::<Result<_, String>>()?;
        side_by_side(tests, |(library, mut tests)| {
            let report = shell::show_and_read(shell::LIMIT, &mut tests)
                .map_err(|why| format!("{}: {why}", library.name()))?;
            if report.contains("running 0 tests") {
                return Err(format!("the module {module} has no tests"));
            }
            Ok(())
        })
    })
}
