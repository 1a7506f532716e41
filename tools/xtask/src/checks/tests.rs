//! Tests that `cargo test` runs; a failed program stops no other.

use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::args::Depth;
use crate::mpi_builds::everything;
use crate::programs::Programs;
use crate::steps::{Step, side_by_side};
use crate::workspace::{Target, Workspace};

const TESTS: &str = "unit, property and integration tests";
const EXAMPLES: &str = "examples in the documentation";

/// Tests with all features; the long run repeats them without MPI, as most users build.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let of_depth = move |words: &str| {
        let mut cargo = everything(workspace, depth, words);
        cargo.envs(browser(depth));
        cargo
    };
    let tests = move |words: &str| {
        let mut tests = of_depth(words);
        if depth == Depth::Quick {
            tests.arg("--tests");
        } else {
            // With MPI, `--tests` includes those that `mpirun` starts.
            tests.args(["--lib", "--bins"]);
            tests.args(named(workspace, "test", |test| !test.needs_mpi()));
        }
        tests
    };
    let mut steps = vec![
        // Apart from their run: to build takes as long, and each has a time limit.
        Step::command("all tests build", tests("cargo test --no-run")),
        Step::new(TESTS, move || run(&mut tests("cargo test --no-run"), depth)),
        Step::command(EXAMPLES, of_depth("cargo test --no-fail-fast --doc")),
    ];
    if depth == Depth::Long {
        let whole = "cargo test --workspace --no-fail-fast";
        // Built first, too: then they run side by side, each with a time limit.
        let apart = move |features: &[String]| {
            let mut tests = command(&format!("{whole} --tests --no-run"));
            tests.args(features);
            run(&mut tests, depth)
        };
        let without_mpi = workspace.features_without_mpi(true);
        let mut examples = command(&format!("{whole} --doc"));
        examples.args(without_mpi.clone());
        // Without cargo bench's `--bench`, a benchmark runs each of its parts once.
        let mut benchmarks = command(whole);
        benchmarks.args(named(workspace, "bench", |bench| {
            bench.required_features.is_empty()
        }));
        steps.extend([
            Step::new(format!("{TESTS} without MPI"), move || apart(&without_mpi)),
            Step::command(format!("{EXAMPLES} without MPI"), examples),
            Step::new(format!("{TESTS} with default features"), move || apart(&[])),
            Step::command("benchmarks run", benchmarks),
        ]);
    }
    steps
}

/// Returns the variable that makes tests fail if they find no browser, where it was installed.
fn browser(depth: Depth) -> Option<(&'static str, &'static str)> {
    (depth > Depth::Quick).then_some(("DOWNBEAT_BROWSER", "required"))
}

/// Builds programs with tests and runs them side by side: cargo would run one after the other, of which each waits for its
/// slowest test.
fn run(build: &mut Command, depth: Depth) -> Outcome {
    let tests = Programs::build(build)?.tests();
    if tests.is_empty() {
        return Err("cargo reports no test".to_owned());
    }
    side_by_side(tests, |mut test| {
        test.envs(browser(depth));
        shell::show_and_read(shell::LIMIT, &mut test)
            .map(drop)
            .map_err(|why| format!("{}: {why}", shell::shown(&test)))
    })
}

/// Returns the arguments that select these targets one by one: a pattern would include those that need a library that may be
/// missing.
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
