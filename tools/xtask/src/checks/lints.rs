//! Clippy, over the features of the packages.

use std::collections::BTreeSet;
use std::process::Command;

use downbeat_launch::command::command;
use downbeat_launch::mpi::OPEN_MPI;

use crate::args::Depth;
use crate::checks::no_std::{self, PROBE};
use crate::features::{powerset, singles};
use crate::mpi_builds::{build_for, for_all, with_mpi};
use crate::steps::Step;
use crate::workspace::{MPI, OTF2, Package, Workspace};

/// The workspace at its default features and with all features, libraries with single features, and all that needs MPI
/// against Open MPI; the long run takes every set of features.
pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let otf2 = depth > Depth::Quick;
    let whole = "cargo clippy --workspace --all-targets --keep-going";
    let mut with_features = command(whole);
    with_features.args(workspace.features_without_mpi(otf2));
    let mut probe = command(&format!(
        "cargo clippy --manifest-path {PROBE} --target-dir"
    ));
    probe.arg(no_std::target(workspace));

    let mut steps = vec![
        strict("lints", command(whole)),
        strict("lints: features without MPI", with_features),
        strict("lints: no_std probe", probe),
    ];
    for package in &workspace.packages {
        steps.extend(single_features(package, otf2));
    }
    if depth > Depth::Quick {
        let features =
            with_mpi(workspace).map(|package| format!("--features={}/mpi", package.name));
        let mut mpi = for_all(
            OPEN_MPI,
            workspace,
            "cargo clippy --lib --bins --keep-going",
        );
        mpi.args(features);
        let all = "cargo clippy --all-targets --all-features --keep-going";
        steps.extend([
            strict("lints: MPI", mpi),
            strict("lints: all features", for_all(OPEN_MPI, workspace, all)),
        ]);
    }
    if depth == Depth::Long {
        for package in &workspace.packages {
            let sets = powerset(package);
            steps.extend(sets.iter().map(|set| every_target(workspace, package, set)));
        }
    }
    steps
}

/// A library, or the programs of a package without one, with none and with each of its features; without the sets that the
/// lints of the whole workspace cover.
fn single_features<'a>(package: &Package, otf2: bool) -> Vec<Step<'a>> {
    let kind = if package.targets_of("lib").next().is_some() {
        "--lib"
    } else if package.targets_of("bin").any(|bin| !bin.needs_mpi()) {
        "--bins"
    } else {
        return vec![];
    };
    let usable = |set: &BTreeSet<&str>| !set.contains(MPI) && (otf2 || !set.contains(OTF2));
    let most = powerset(package).into_iter().filter(usable);
    let most = most.max_by_key(BTreeSet::len).unwrap_or_default();
    let sets = singles(package).into_iter();
    sets.filter(|set| usable(set) && *set != most)
        .map(|set| with_set(package, &set, kind, |_| {}))
        .collect()
}

/// All targets of a package with a set of features.
fn every_target<'a>(workspace: &Workspace, package: &Package, set: &BTreeSet<&str>) -> Step<'a> {
    with_set(package, set, "--all-targets", |clippy| {
        if set.contains(MPI) {
            build_for(OPEN_MPI, workspace, clippy);
        }
    })
}

fn with_set<'a>(
    package: &Package,
    set: &BTreeSet<&str>,
    targets: &str,
    adjust: impl FnOnce(&mut Command),
) -> Step<'a> {
    let name = &package.name;
    let features = set.iter().copied().collect::<Vec<_>>().join(",");
    let mut clippy = command(&format!(
        "cargo clippy -p {name} {targets} --no-default-features"
    ));
    if !features.is_empty() {
        clippy.args(["--features", &features]);
    }
    adjust(&mut clippy);
    strict(
        &format!("lints: {name} {targets} with features [{features}]"),
        clippy,
    )
}

/// A step that fails on warnings.
fn strict<'a>(name: &str, mut clippy: Command) -> Step<'a> {
    clippy.args(["--", "-D", "warnings"]);
    Step::command(name, clippy)
}
