//! Tests that `cargo test` runs; a failed program stops no other.

use downbeat_launch::command::command;

use crate::args::Depth;
use crate::steps::Step;
use crate::workspace::Workspace;

pub(crate) fn steps<'a>(workspace: &Workspace, depth: Depth) -> Vec<Step<'a>> {
    let features = workspace.features_without_mpi(depth > Depth::Quick);
    let with_features = |name: &str, words: &str| {
        let mut test = command(words);
        test.args(&features);
        Step::command(name, test)
    };
    let mut steps = vec![
        with_features(
            "unit, property and integration tests",
            "cargo test --workspace --no-fail-fast --tests",
        ),
        with_features(
            "examples in the documentation",
            "cargo test --workspace --no-fail-fast --doc",
        ),
    ];
    if depth == Depth::Long {
        steps.push(Step::command(
            "unit, property and integration tests with default features",
            command("cargo test --workspace --no-fail-fast --tests"),
        ));
        // Without cargo bench's `--bench`, a benchmark runs each of its parts once. Named one by one: a pattern would include
        // those that need a library that may be missing.
        let mut benchmarks = command("cargo test --workspace --no-fail-fast");
        let benches = workspace
            .packages
            .iter()
            .flat_map(|package| package.targets_of("bench"));
        for bench in benches.filter(|bench| bench.required_features.is_empty()) {
            benchmarks.args(["--bench", &bench.name]);
        }
        steps.push(Step::command("benchmarks run", benchmarks));
    }
    steps
}
