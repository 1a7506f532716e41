//! What `cargo test` runs; a failed program keeps no other from running.

use std::process::Command;

use crate::steps::Step;
use crate::workspace::Workspace;
use downbeat_launch::command::command;

pub(crate) fn steps<'a>(workspace: &Workspace) -> Vec<Step<'a>> {
    // Without cargo bench's `--bench`, a benchmark runs each of its parts once. Named one by one: a pattern would also
    // mean those that need a library that may not be there, and fail.
    let mut benchmarks = command("cargo test --workspace --no-fail-fast");
    let benches = workspace
        .packages
        .iter()
        .flat_map(|package| package.targets_of("bench"));
    for bench in benches.filter(|bench| bench.required_features.is_empty()) {
        benchmarks.args(["--bench", &bench.name]);
    }
    vec![
        Step::command(
            "unit, property and integration tests",
            command("cargo test --workspace --no-fail-fast --tests"),
        ),
        Step::command(
            "documentation's examples",
            command("cargo test --workspace --no-fail-fast --doc"),
        ),
        Step::command("benchmarks run", benchmarks),
        Step::command("tests with more features", with_features(workspace)),
    ]
}

/// The tests that need features, but no MPI, and the unit tests of their packages with those features.
fn with_features(workspace: &Workspace) -> Command {
    let mut test = command("cargo test --no-fail-fast --lib");
    for package in &workspace.packages {
        let tests = package
            .targets_of("test")
            .filter(|test| !test.required_features.is_empty() && !test.needs_mpi());
        for needs in tests {
            test.args(["-p", &package.name, "--test", &needs.name])
                .args(needs.features_of(package));
        }
    }
    test
}
