//! The tests of the MPI program, which `downbeat-tests` holds, under both MPI libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::command as shell;
use downbeat_launch::environment;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};

use crate::args::Depth;
use crate::mpi_builds::{MPI_PROGRAM, build_step, programs, yielding};
use crate::steps::{Lane, Step, side_by_side};
use crate::workspace::Workspace;

/// The test target that starts jobs of the MPI program, and the list of its modules.
pub(crate) const MPI_PROGRAM_TESTS: &str = "mpi_program";
const MODULES: &str = "tests/tests/mpi_program/main.rs";

/// Module of helpers.
const SHARED: &str = "job";

/// Modules that are run for Open MPI alone. Of MPICH, the launcher tends to hang over TCP
/// with three ranks and more, and EZTrace is not built for it.
const OPEN_MPI_ONLY: [&str; 3] = ["eztrace", "several_hosts", BATCH_JOBS];

/// Modules that are run for MPICH in a long run alone: of options, records, outputs,
/// presets, plug-ins, corrections and widths.
const MPICH_IN_LONG_RUN: [&str; 7] = [
    "bench_input",
    "bench_records",
    "outputs",
    "plug_ins",
    "presets",
    "trace_correct",
    "widths",
];

/// Modules whose jobs are short or wait for hosts.
const WAITING: [&str; 5] = [
    BATCH_JOBS,
    "bench_records",
    "launchers",
    "several_hosts",
    "widths",
];

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

/// Runs a module under both libraries side by side: the jobs wait for their launchers
/// most of the time.
fn step(workspace: &Workspace, module: String, depth: Depth) -> Step<'_> {
    let of_open_mpi = build_step(OPEN_MPI);
    let awaited = match libraries(&module, depth) {
        [_] if module != BATCH_JOBS => vec![of_open_mpi],
        _ => vec![of_open_mpi, build_step(MPICH)],
    };
    let lane = match WAITING.contains(&&*module) {
        true => Lane::Wait,
        false => Lane::Ranks,
    };
    let step = Step::new(format!("MPI program: {module}"), move || {
        let downbeat = programs(OPEN_MPI, workspace)?.executable("downbeat")?;
        let tests = libraries(&module, depth).iter().map(|&library| {
            let programs = programs(library, workspace)?;
            let program = link_for(&module, &programs.executable(MPI_PROGRAM)?)?;
            let mut tests = Command::new(programs.executable(MPI_PROGRAM_TESTS)?);
            tests
                .arg(format!("{module}::"))
                .env(environment::LIBRARY, library.suffix())
                .env(environment::MPI_PROGRAM, program)
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
    });
    step.in_lane(lane, &awaited)
}

/// Returns the libraries under which the tests of a module run.
fn libraries(module: &str, depth: Depth) -> &'static [MpiLibrary] {
    let is_for_both = !OPEN_MPI_ONLY.contains(&module)
        && (depth == Depth::Long || !MPICH_IN_LONG_RUN.contains(&module));
    match is_for_both {
        true => &[OPEN_MPI, MPICH],
        false => &[OPEN_MPI],
    }
}

/// Gives a program a path of its own for each module: the tests look for the ranks that
/// they started by it, and two modules may run at once.
fn link_for(module: &str, program: &Path) -> Result<PathBuf, String> {
    let folder = program.with_file_name("of-tests").join(module);
    let link = folder.join(MPI_PROGRAM);
    let _ = fs::remove_file(&link);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::hard_link(program, &link))
        .map_err(|why| format!("{}: {why}", link.display()))?;
    Ok(link)
}
