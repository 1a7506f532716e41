//! What `cargo test` runs; a failed program keeps no other from running.

use crate::shell::command;
use crate::steps::Step;

pub(crate) fn steps<'a>() -> [Step<'a>; 3] {
    [
        Step::command("unit, property and integration tests", command("cargo test --workspace --no-fail-fast --tests")),
        Step::command("documentation's examples", command("cargo test --workspace --no-fail-fast --doc")),
        // Without cargo bench's `--bench`, a benchmark runs each of its parts once.
        Step::command("benchmarks run", command("cargo test --workspace --no-fail-fast --bench *")),
    ]
}
