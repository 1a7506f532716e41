//! Clippy, over the features of the packages.

use std::collections::BTreeSet;
use std::process::Command;

use downbeat_launch::command::command;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};

use crate::args::Depth;
use crate::checks::cargo::NO_STD_PROBE;
use crate::features::{powerset, singles};
use crate::mpi_builds::{beside_everything, everything, for_all, with_mpi};
use crate::steps::Step;
use crate::workspace::{MPI, Package, Workspace};

/// The workspace with all features; the long run takes every set of features.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let all_targets = "cargo clippy --all-targets --keep-going";
    let whole = || {
        let mut whole = beside_everything(workspace, depth, all_targets);
        whole.arg("--workspace");
        whole
    };
    let mut probe = command(&format!(
        "cargo clippy --manifest-path {NO_STD_PROBE} --target-dir"
    ));
    probe.arg(workspace.built("no_std"));

    let mut steps = vec![
        strict(
            "lints: all features",
            everything(workspace, depth, all_targets),
        ),
        strict("lints: no_std probe", probe),
    ];
    if depth == Depth::Long {
        for package in &workspace.packages {
            steps.extend(single_features(workspace, package));
        }
        // Some code is for the functions of one library.
        steps.push(with_library(workspace, OPEN_MPI));
        steps.push(with_library(workspace, MPICH));
        steps.push(strict("lints", whole()));
        let mut without_mpi = whole();
        without_mpi.args(workspace.features_without_mpi(true));
        steps.push(strict("lints: features without MPI", without_mpi));
        for package in &workspace.packages {
            let sets = powerset(package);
            steps.extend(
                sets.iter()
                    .map(|set| with_set(workspace, package, set, "--all-targets")),
            );
        }
    }
    steps
}

/// Libraries and programs that use an MPI library, without other features.
fn with_library<'a>(workspace: &Workspace, library: MpiLibrary) -> Step<'a> {
    let features = with_mpi(workspace).map(|package| format!("--features={}/mpi", package.name));
    let words = "cargo clippy --lib --bins --keep-going";
    let mut clippy = for_all(library, workspace, words);
    clippy.args(features);
    strict(&format!("lints: {}", library.name()), clippy)
}

/// A library, or the programs of a package without one, with none and with each of its
/// features; without the sets that the lints of the whole workspace cover.
fn single_features<'a>(workspace: &Workspace, package: &Package) -> Vec<Step<'a>> {
    let kind = if package.targets_of("lib").next().is_some() {
        "--lib"
    } else if package.targets_of("bin").any(|bin| !bin.needs_mpi()) {
        "--bins"
    } else {
        return vec![];
    };
    let usable = |set: &BTreeSet<&str>| !set.contains(MPI);
    let most = powerset(package).into_iter().filter(usable);
    let most = most.max_by_key(BTreeSet::len).unwrap_or_default();
    let sets = singles(package).into_iter();
    sets.filter(|set| usable(set) && *set != most)
        .map(|set| with_set(workspace, package, &set, kind))
        .collect()
}

fn with_set<'a>(
    workspace: &Workspace,
    package: &Package,
    set: &BTreeSet<&str>,
    targets: &str,
) -> Step<'a> {
    let name = &package.name;
    let features = set.iter().copied().collect::<Vec<_>>().join(",");
    let words = format!("cargo clippy -p {name} {targets} --no-default-features");
    let mut clippy = beside_everything(workspace, Depth::Long, &words);
    if !features.is_empty() {
        clippy.args(["--features", &features]);
    }
    strict(
        &format!("lints: {name} {targets} with features [{features}]"),
        clippy,
    )
}

/// A step that fails on warnings.
pub(crate) fn strict<'a>(name: &str, mut clippy: Command) -> Step<'a> {
    clippy.args(["--", "-D", "warnings"]);
    Step::command(name, clippy)
}
