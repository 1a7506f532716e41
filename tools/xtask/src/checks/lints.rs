//! Clippy and the oldest compilers, over the features of the packages; only in a long
//! run.

use std::collections::{BTreeMap, BTreeSet};

use downbeat_launch::command::command;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};

use crate::features::{powerset, singles};
use crate::mpi_builds::{build_for, with_mpi};
use crate::steps::Step;
use crate::workspace::{MPI, Package, Workspace};

/// Warnings are failures.
const STRICT: [&str; 3] = ["--", "-D", "warnings"];

/// Lints of a long run, which takes every set of features, and the oldest compilers.
pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = vec![];
    for package in &workspace.packages {
        steps.extend(single_features(workspace, package));
    }
    // Some code is for the functions of one library.
    steps.push(with_library(workspace, OPEN_MPI));
    steps.push(with_library(workspace, MPICH));
    let all_targets = "--workspace --all-targets --keep-going";
    steps.push(strict(workspace, "lints", all_targets, vec![]));
    let features = workspace.features_without_mpi(true);
    let name = "lints: features without MPI";
    steps.push(strict(workspace, name, all_targets, features));
    for package in &workspace.packages {
        let sets = powerset(package);
        steps.extend(
            sets.iter()
                .map(|set| with_set(workspace, package, set, "--all-targets")),
        );
    }
    steps.extend(oldest_compilers(workspace));
    steps
}

/// Packages compile with the oldest compiler that their manifests declare, one step for
/// each version; clippy only knows which functions that one has. Features that need an
/// MPI library are left out: its bindings are those of the machine.
fn oldest_compilers<'a>(workspace: &Workspace) -> Vec<Step<'a>> {
    let mut by_version: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &workspace.packages {
        let packages = by_version.entry(&package.rust_version).or_default();
        packages.push(package);
    }
    let check = |(version, packages): (&str, Vec<&Package>)| {
        let words = format!("cargo +{version} check --lib --bins --target-dir");
        let mut check = command(&words);
        check.arg(workspace.built("oldest-compiler"));
        for package in packages {
            check.args(["-p", &package.name]);
            check.args(package.features_without_mpi());
        }
        Step::command(format!("oldest compiler: {version}"), check)
    };
    by_version.into_iter().map(check).collect()
}

/// Libraries and programs that use an MPI library, without other features: all packages
/// at once, so that their common dependencies have one set of features and are built
/// once.
fn with_library<'a>(workspace: &Workspace, library: MpiLibrary) -> Step<'a> {
    let mut clippy = command("cargo clippy --lib --bins --keep-going");
    for package in with_mpi(workspace) {
        let feature = format!("--features={}/{MPI}", package.name);
        clippy.args(["-p", &package.name, &feature]);
    }
    build_for(library, workspace, &mut clippy);
    clippy.args(STRICT);
    Step::command(format!("lints: {}", library.name()), clippy)
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
    let package = &package.name;
    let features = set.iter().copied().collect::<Vec<_>>().join(",");
    let name = format!("lints: {package} {targets} with features [{features}]");
    let words = format!("-p {package} {targets} --no-default-features");
    let features = (!features.is_empty()).then(|| format!("--features={features}"));
    strict(workspace, &name, &words, features)
}

/// A step that fails on warnings, and builds where everything is built with all features,
/// so that common dependencies are built once.
fn strict<'a>(
    workspace: &Workspace,
    name: &str,
    words: &str,
    features: impl IntoIterator<Item = String>,
) -> Step<'a> {
    let mut clippy = command(&format!("cargo clippy {words}"));
    build_for(OPEN_MPI, workspace, &mut clippy);
    clippy.args(features).args(STRICT);
    Step::command(name, clippy)
}
