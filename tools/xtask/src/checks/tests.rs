//! Tests that `cargo test` runs; a failed program stops no other.

use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::environment;
use downbeat_launch::mpi::{MPICH, OPEN_MPI};

use crate::args::Depth;
use crate::checks::listed::PROJECT_TESTS;
use crate::checks::setup;
use crate::mpi_builds::{build_step, programs, select_everything};
use crate::programs::Programs;
use crate::steps::{Lane, Step, side_by_side};
use crate::workspace::{Target, Workspace};

pub(crate) const BUILD: &str = "all tests build";
/// Sources of tests that wait: for times, for threads that take turns, for other
/// programs.
const WAITING: [&str; 14] = [
    "sync/tests/algorithms.rs",
    "sync/tests/harmonize.rs",
    "sync/tests/keep.rs",
    "sync/tests/mailbox_stress.rs",
    "sync/tests/thread_comm.rs",
    "timers/src/lib.rs",
    "tools/cli/tests/bench.rs",
    "tools/cli/tests/cli.rs",
    "tools/cli/tests/environment.rs",
    "tools/cli/tests/run.rs",
    "tools/cli/tests/time.rs",
    "tools/downbeat/tests/global_clock.rs",
    "tools/downbeat/tests/timesync.rs",
    "tools/launch/src/lib.rs",
];
const WAITING_TESTS: &str = "tests that wait";
const TESTS: &str = "unit, property and integration tests";
const EXAMPLES: &str = "examples in the documentation";

/// Tests with all features; the long run repeats them without MPI, as most users build.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let tests = move |words: &str| {
        let mut tests = command(words);
        select_everything(&mut tests, workspace, depth);
        if depth == Depth::Quick {
            tests.arg("--tests");
        } else {
            // With MPI, `--tests` includes those that `mpirun` starts.
            tests.args(["--lib", "--bins"]);
            tests.args(named(workspace, "test", |test| {
                !test.needs_mpi() && test.name != PROJECT_TESTS
            }));
        }
        tests
    };
    let mut steps = vec![
        // Apart from their run: to build takes as long, and each has a time limit.
        Step::new(BUILD, move || {
            Programs::build(&mut tests("cargo test --no-run")).map(drop)
        })
        .in_lane(Lane::Compile, &[setup::PACKAGES]),
        Step::new(TESTS, move || {
            let mut all = build_tests(&mut tests("cargo test --no-run"))?;
            all.retain(|(source, _)| !is_waiting(source));
            run(all, depth)
        })
        // Until all is built that other lanes await, the cores are busy.
        .in_lane(Lane::Compute, &[BUILD, &build_step(MPICH)]),
        Step::new(WAITING_TESTS, move || {
            let mut all = build_tests(&mut tests("cargo test --no-run"))?;
            all.retain(|(source, _)| is_waiting(source));
            match all.len() == WAITING.len() {
                true => run(all, depth),
                false => Err(format!(
                    "not all of these are tests: {}",
                    WAITING.join(", ")
                )),
            }
        })
        .in_lane(Lane::Wait, &[BUILD]),
    ];
    if depth == Depth::Long {
        steps.extend(long_steps(workspace));
    }
    steps
}

/// Tests of a long run: without MPI, and with default features, as most users build.
fn long_steps(workspace: &Workspace) -> [Step<'_>; 4] {
    let whole = "cargo test --workspace --no-fail-fast";
    // Built first, too: then they run side by side, each with a time limit.
    let apart = move |features: &[String]| {
        let mut tests = command(&format!("{whole} --tests --no-run"));
        tests.args(features);
        run(build_tests(&mut tests)?, Depth::Long)
    };
    let without_mpi = workspace.features_without_mpi(true);
    let mut examples = command(&format!("{whole} --doc"));
    examples.args(without_mpi.clone());
    // Without cargo bench's `--bench`, a benchmark runs each of its parts once.
    let mut benchmarks = command(whole);
    benchmarks.args(named(workspace, "bench", |bench| {
        bench.required_features.is_empty()
    }));
    [
        Step::new(format!("{TESTS} without MPI"), move || apart(&without_mpi)),
        Step::command(format!("{EXAMPLES} without MPI"), examples),
        Step::new(format!("{TESTS} with default features"), move || apart(&[])),
        Step::command("benchmarks run", benchmarks),
    ]
}

/// Every example program runs to its end; those that need MPI do so in `mpi`.
pub(crate) fn example_programs(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = vec![];
    for package in &workspace.packages {
        let examples = package.targets_of("example");
        for example in examples.filter(|example| !example.needs_mpi()) {
            let name = format!("example: {} {}", package.name, example.name);
            let step = Step::new(name, move || {
                let example = programs(OPEN_MPI, workspace)?.executable(&example.name)?;
                shell::run(&mut Command::new(example))
            });
            steps.push(step.in_lane(Lane::Compute, &[build_step(OPEN_MPI)]));
        }
    }
    steps
}

/// Returns the variables of tests: they fail if they find no browser, where it was
/// installed. A quick run uses none. Only a long run takes all random cases; others take
/// an eighth.
fn test_variables(depth: Depth) -> &'static [(&'static str, &'static str)] {
    match depth {
        Depth::Quick => &[("DOWNBEAT_BROWSER", "unused"), ("PROPTEST_CASES", "32")],
        Depth::Normal => &[("DOWNBEAT_BROWSER", "required"), ("PROPTEST_CASES", "32")],
        Depth::Long => &[("DOWNBEAT_BROWSER", "required"), (environment::LONG, "1")],
    }
}

/// Builds programs with tests; returns their sources and commands, without the rules of
/// the project, which have steps of their own.
fn build_tests(build: &mut Command) -> Result<Vec<(PathBuf, Command)>, String> {
    let mut tests = Programs::build(build)?.tests();
    tests.retain(|(source, _)| !source.ends_with(format!("{PROJECT_TESTS}/main.rs")));
    if tests.is_empty() {
        return Err("cargo reports no test".to_owned());
    }
    Ok(tests)
}

fn is_waiting(source: &Path) -> bool {
    WAITING.iter().any(|waiting| source.ends_with(waiting))
}

/// Runs programs with tests side by side: cargo would run one after the other, of which
/// each waits for its slowest test.
fn run(tests: Vec<(PathBuf, Command)>, depth: Depth) -> Outcome {
    side_by_side(tests, |(_, mut test)| {
        test.envs(test_variables(depth).iter().copied());
        shell::show_and_read(shell::LIMIT, &mut test)
            .map(drop)
            .map_err(|why| format!("{}: {why}", shell::shown(&test)))
    })
}

/// Returns the arguments that select these targets one by one: a pattern would include
/// those that need a library that may be missing.
fn named(workspace: &Workspace, kind: &str, wanted: fn(&Target) -> bool) -> Vec<String> {
    let targets = workspace
        .packages
        .iter()
        .flat_map(|package| package.targets_of(kind));
    targets
        .filter(|target| wanted(target))
        .map(|target| format!("--{kind}={}", target.name))
        .collect()
}
