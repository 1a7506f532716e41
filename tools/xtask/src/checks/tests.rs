//! What `cargo test` runs; a failed program keeps no other from running.

use crate::shell::command;
use crate::steps::Step;
use crate::workspace::Workspace;

pub(crate) fn steps<'a>(workspace: &Workspace) -> Vec<Step<'a>> {
    // Without cargo bench's `--bench`, a benchmark runs each of its parts once. Named one by one: a pattern would also
    // mean those that need a library that may not be there, and fail.
    let mut benchmarks = command("cargo test --workspace --no-fail-fast");
    let benches = workspace.packages.iter().flat_map(|package| package.targets_of("bench"));
    for bench in benches.filter(|bench| bench.required_features.is_empty()) {
        benchmarks.args(["--bench", &bench.name]);
    }
    let mut steps = vec![
        Step::command("unit, property and integration tests", command("cargo test --workspace --no-fail-fast --tests")),
        Step::command("documentation's examples", command("cargo test --workspace --no-fail-fast --doc")),
        Step::command("benchmarks run", benchmarks),
    ];
    for package in &workspace.packages {
        let of_features = package.targets_of("test").filter(|test| !test.required_features.is_empty());
        for test in of_features.filter(|test| !test.needs_mpi()) {
            let features = test.required_features.join(",");
            let mut run = command("cargo test --no-fail-fast");
            run.args(["-p", &package.name, "--features", &features, "--test", &test.name]);
            if package.targets_of("lib").next().is_some() {
                run.arg("--lib");
            }
            steps.push(Step::command(format!("tests: {} with features [{features}]", package.name), run));
        }
    }
    steps
}
