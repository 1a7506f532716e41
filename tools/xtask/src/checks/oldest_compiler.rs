//! Packages compile with the oldest compiler that their manifests declare; clippy only
//! knows which functions that one has.

use std::collections::BTreeMap;
use std::process::Command;

use downbeat_launch::command::command;

use crate::steps::Step;
use crate::workspace::{MPI, Package, Workspace};

/// One step for each version. Features that need an MPI library are left out: its
/// bindings are those of the machine.
pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut by_version: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &workspace.packages {
        by_version
            .entry(&package.registry.rust_version)
            .or_default()
            .push(package);
    }
    by_version
        .into_iter()
        .map(|(version, packages)| {
            let check = check(workspace, version, &packages);
            Step::command(format!("oldest compiler: {version}"), check)
        })
        .collect()
}

fn check(workspace: &Workspace, version: &str, packages: &[&Package]) -> Command {
    let mut check = command(&format!("cargo +{version} check --lib --bins --target-dir"));
    check.arg(workspace.built("oldest-compiler"));
    for package in packages {
        check.args(["-p", &package.name]);
        let without_mpi = package.features.iter().filter(|(name, enables)| {
            *name != MPI && !enables.iter().any(|enabled| enabled == MPI)
        });
        check.args(without_mpi.map(|(name, _)| format!("--features={}/{name}", package.name)));
    }
    check
}
