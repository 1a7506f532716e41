//! Clippy has nothing to say, whatever features are on.

use std::collections::BTreeSet;
use std::process::Command;

use crate::checks::no_std::{self, PROBE};
use crate::features::powerset;
use crate::steps::Step;
use crate::workspace::{MPI, Package, Workspace};
use downbeat_launch::command::command;

/// Everything at its default features, then each package that has features at each set of them.
pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let whole = command("cargo clippy --workspace --all-targets --keep-going -- -D warnings");
    let mut probe = command(&format!(
        "cargo clippy --manifest-path {PROBE} --target-dir"
    ));
    probe
        .arg(no_std::target(workspace))
        .args(["--", "-D", "warnings"]);

    let mut steps = vec![
        Step::command("lints", whole),
        Step::command("lints: no_std probe", probe),
    ];
    for package in workspace
        .packages
        .iter()
        .filter(|package| !package.features.is_empty())
    {
        let sets = powerset(package)
            .into_iter()
            .filter(|set| !set.contains(MPI));
        steps.extend(sets.map(|set| step(package, &set, |_| {})));
    }
    steps
}

/// The lints of one package at one set of features; `adjust` may add to the command before its `--`.
pub(crate) fn step<'a>(
    package: &Package,
    features: &BTreeSet<&str>,
    adjust: impl FnOnce(&mut Command),
) -> Step<'a> {
    let features = features.iter().copied().collect::<Vec<_>>().join(",");
    let mut clippy = command(&format!(
        "cargo clippy -p {} --all-targets --no-default-features",
        package.name
    ));
    if !features.is_empty() {
        clippy.args(["--features", &features]);
    }
    adjust(&mut clippy);
    clippy.args(["--", "-D", "warnings"]);
    Step::command(
        format!("lints: {} with features [{features}]", package.name),
        clippy,
    )
}
