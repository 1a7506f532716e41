//! Tests and examples that need MPI, and tests of the MPI program; `downbeat-tests` holds
//! most of them.

use std::process::Command;
use std::time::Duration;

use downbeat_launch::command as shell;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, all_passed, environment};

use crate::args::Depth;
use crate::mpi_builds::{INSTALLED_TESTS, MPI_PROGRAM, build_step, programs, with_mpi, yielding};
use crate::programs::Programs;
use crate::steps::{Lane, Step, refuse_no_tests, side_by_side};
use crate::workspace::{Target, Workspace};

/// Even, odd, a power of two and not: algorithms have remainders.
const TEST_RANKS: [u32; 6] = [1, 2, 3, 4, 5, 8];
/// The second library has the same code above it.
const TEST_RANKS_OF_MPICH: [u32; 2] = [2, 4];
const LONG_TEST_RANKS: [u32; 7] = [1, 2, 3, 4, 5, 7, 8];

const EXAMPLE_RANKS: [u32; 2] = [2, 3];

/// The test target that starts jobs of the MPI program.
pub(crate) const MPI_PROGRAM_TESTS: &str = "mpi_program";

/// Module that runs the programs of both libraries on the same emulated hosts.
pub(crate) const BATCH_JOBS: &str = "batch_jobs";

/// Tests that start `mpirun` themselves.
const START_MPIRUN: [&str; 2] = [MPI_PROGRAM_TESTS, INSTALLED_TESTS];

/// Time limit of a job: a rank that waits for another for ever is the most frequent
/// fault.
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for library in [OPEN_MPI, MPICH] {
        steps.push(Step::new(build_step(library), move || {
            programs(library, workspace).map(drop)
        }));
        steps.extend(tests_and_examples(workspace, library, depth));
    }
    steps
}

/// The tests that run under `mpirun`, and the examples that require MPI.
fn tests_and_examples(workspace: &Workspace, library: MpiLibrary, depth: Depth) -> Vec<Step<'_>> {
    let of_kind = |kind| {
        let targets = with_mpi(workspace).flat_map(move |package| package.targets_of(kind));
        targets
            .filter(|target| target.needs_mpi() && !START_MPIRUN.contains(&&*target.name))
            .map(move |target| {
                let step = Step::new(
                    format!("{}: {} {}", library.name(), kind, target.name),
                    move || {
                        let programs = programs(library, workspace)?;
                        run(&programs, target, library, depth)
                    },
                );
                step.in_lane(Lane::Ranks, &[&build_step(library)])
            })
    };
    of_kind("test").chain(of_kind("example")).collect()
}

/// Returns the numbers of ranks that a program runs with.
fn rank_counts(program: &Target, library: MpiLibrary, depth: Depth) -> &'static [u32] {
    if program.kind() == "example" {
        &EXAMPLE_RANKS
    } else if depth == Depth::Long {
        &LONG_TEST_RANKS
    } else if library == MPICH {
        &TEST_RANKS_OF_MPICH
    } else {
        &TEST_RANKS
    }
}

/// Runs the program under each number of ranks, also after a failure.
fn run(programs: &Programs, target: &Target, library: MpiLibrary, depth: Depth) -> Outcome {
    let program = Command::new(programs.executable(&target.name)?);
    let yielding = yielding(library, programs)?;
    let ranks = rank_counts(target, library, depth).iter();
    all_passed(ranks.filter_map(|&ranks| {
        let mut mpirun = library.oversubscribed_mpirun();
        mpirun.envs(depth.variable());
        library.preload(&mut mpirun, yielding.as_slice());
        run_once(&program, mpirun, ranks)
            .err()
            .map(|why| format!("{ranks} ranks: {why}"))
    }))
}

pub(crate) fn run_once(program: &Command, mut mpirun: Command, ranks: u32) -> Outcome {
    mpirun.args(["-np", &ranks.to_string()]);
    let mut mpirun = shell::started_by(mpirun, program);
    is_one_job(&shell::show_and_read(RUN_LIMIT, &mut mpirun)?, ranks)
}

/// Runs a module of the tests under these libraries side by side: the jobs wait for their
/// launchers most of the time.
pub(crate) fn test_module(
    workspace: &Workspace,
    depth: Depth,
    module: &str,
    libraries: &[MpiLibrary],
) -> Outcome {
    side_by_side(libraries, |library| {
        let mut tests = tests_of(workspace, depth, module, *library)?;
        let outcome = shell::show_and_read(shell::LIMIT, &mut tests);
        let name = format!("the module {module}");
        let outcome = outcome.and_then(|written| refuse_no_tests(&name, &written));
        outcome.map_err(|why| format!("{}: {why}", library.name()))
    })
}

fn tests_of(
    workspace: &Workspace,
    depth: Depth,
    module: &str,
    library: MpiLibrary,
) -> Result<Command, String> {
    let downbeat = programs(OPEN_MPI, workspace)?.executable("downbeat")?;
    let of_library = programs(library, workspace)?;
    let mut tests = Command::new(of_library.executable(MPI_PROGRAM_TESTS)?);
    tests
        .arg(format!("{module}::"))
        .env(environment::LIBRARY, library.suffix())
        .env(
            environment::MPI_PROGRAM,
            of_library.executable(MPI_PROGRAM)?,
        )
        .env(environment::PROGRAM, downbeat);
    if module == BATCH_JOBS {
        let mpich = programs(MPICH, workspace)?;
        tests.env(environment::MPICH_PROGRAM, mpich.executable(MPI_PROGRAM)?);
    }
    if let Some(library) = yielding(library, &of_library)? {
        tests.env(environment::YIELD, library);
    }
    tests.envs(depth.variable());
    Ok(tests)
}

/// Checks that `rank 0 of N` is printed once: a program that is linked to another library
/// runs as N jobs of one rank each, and passes every test of its own.
fn is_one_job(output: &str, ranks: u32) -> Outcome {
    let jobs: Vec<&str> = output
        .split("rank 0 of ")
        .skip(1)
        .map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap_or_default()
        })
        .collect();
    match jobs.as_slice() {
        [size] if *size == ranks.to_string() => Ok(()),
        [] => Err(format!("no rank printed `rank 0 of {ranks}`")),
        sizes => Err(format!(
            "expected one job of {ranks} ranks, found jobs of {}",
            sizes.join(" + ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_noticed() {
        assert_eq!(
            is_one_job("rank 1 of 3\nrank 0 of 3: fine\nrank 2 of 3\n", 3),
            Ok(())
        );
        assert!(is_one_job("rank 0 of 13\n", 3).is_err());
        assert!(is_one_job("fine\n", 3).is_err());
        let singletons = is_one_job("rank 0 of 1\nrank 0 of 1\n", 2);
        assert_eq!(
            singletons,
            Err("expected one job of 2 ranks, found jobs of 1 + 1".into())
        );
    }
}
