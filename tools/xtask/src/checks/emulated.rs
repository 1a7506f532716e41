//! Unit tests on another processor, by an emulator of its instructions.

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::steps::Step;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const RUNNER: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Packages that contain code of the processor, or arithmetic close to it.
const PACKAGES: [&str; 3] = ["downbeat-clock-core", "downbeat-timers", "downbeat-sync"];

pub(crate) fn steps(workspace: &Workspace) -> [Step<'_>; 2] {
    [
        Step::new("aarch64: unit tests under qemu", move || {
            // One by one, each with a time limit.
            PACKAGES
                .iter()
                .try_for_each(|package| cargo(workspace, &format!("cargo test --lib -p {package}")))
        }),
        Step::new("aarch64: the counter is calibrated under qemu", move || {
            let calibrate = "cargo run -p downbeat-cli -- calibrate --duration 100ms --repeat 2";
            cargo(workspace, calibrate)
        }),
    ]
}

fn cargo(workspace: &Workspace, words: &str) -> Outcome {
    let (words, arguments) = words.split_once(" -- ").unwrap_or((words, ""));
    let mut cargo = command(&format!("{words} --target {TARGET} --target-dir"));
    cargo.arg(workspace.built("targets"));
    cargo.arg("--").args(arguments.split_whitespace());
    shell::run(cargo.envs([
        (
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc",
        ),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", RUNNER),
        // Instructions take ten times as long.
        ("PROPTEST_CASES", "16"),
    ]))
}
