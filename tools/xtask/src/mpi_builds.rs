//! Builds against an MPI library, each library in a target directory of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::args::Depth;
use crate::programs::Programs;
use crate::workspace::{Package, Workspace};

/// The binary that `mpirun` starts.
pub(crate) const MPI_PROGRAM: &str = "downbeat-mpi";

/// The test target that tests an installation of all libraries.
pub(crate) const INSTALLED_TESTS: &str = "installed";

/// The shared library that lets waiting ranks yield their core.
const YIELD_WHEN_IDLE: &str = "yield_when_idle";

/// Returns the packages that can use MPI.
pub(crate) fn with_mpi(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace
        .packages
        .iter()
        .filter(|package| package.has_mpi())
}

/// Makes cargo build for this library, apart from builds for others.
pub(crate) fn build_for(library: MpiLibrary, workspace: &Workspace, cargo: &mut Command) {
    cargo
        .arg("--target-dir")
        .arg(workspace.built(library.suffix()))
        .env("MPICC", format!("mpicc.{}", library.suffix()));
}

/// Makes cargo work on the whole workspace with all features, against Open MPI; in a
/// quick run with those that need no system packages. Steps that all do so share what
/// they build.
pub(crate) fn select_everything(cargo: &mut Command, workspace: &Workspace, depth: Depth) {
    cargo.arg("--workspace");
    if depth == Depth::Quick {
        cargo.args(workspace.features_without_mpi(false));
        // Not where a developer builds, with other settings.
        cargo.arg("--target-dir").arg(workspace.built("quick"));
    } else {
        cargo.arg("--all-features");
        build_for(OPEN_MPI, workspace, cargo);
    }
}

/// Name of the step that builds the programs for a library.
pub(crate) fn build_step(library: MpiLibrary) -> String {
    format!("{}: all programs build", library.name())
}

/// Builds the libraries, the tests, the examples and the programs with all features: for
/// Open MPI all of them, for another library what uses MPI.
pub(crate) fn programs(library: MpiLibrary, workspace: &Workspace) -> Result<Programs, String> {
    let mut build = command("cargo build --workspace --all-features --lib");
    build_for(library, workspace, &mut build);
    if library == OPEN_MPI {
        build.args(["--bins", "--examples"]);
    } else {
        copy_what_is_built(library, workspace)?;
    }
    for package in with_mpi(workspace) {
        let targets = package.targets.iter().filter(|target| {
            let is_wanted = library == OPEN_MPI || target.name != INSTALLED_TESTS;
            target.needs_mpi() && target.kind() != "bench" && is_wanted
        });
        for target in targets {
            build.args([&format!("--{}", target.kind()), &target.name]);
        }
    }
    Programs::build(&mut build)
}

/// Makes the first build for a library start from a copy of the build for Open MPI, in
/// which only what uses MPI is built again.
fn copy_what_is_built(library: MpiLibrary, workspace: &Workspace) -> Outcome {
    let [from, to] = [OPEN_MPI, library].map(|library| workspace.built(library.suffix()));
    if to.exists() || !from.exists() {
        return Ok(());
    }
    // Under another name until it is whole.
    let part = to.with_extension("part");
    let mut copy = command("cp --archive");
    shell::read(copy.arg(from).arg(&part))?;
    let mut clean = command("cargo clean --quiet --package mpi --package mpi-sys --target-dir");
    clean.arg(&part);
    clean.args(with_mpi(workspace).flat_map(|package| ["--package", &package.name]));
    shell::read(&mut clean)?;
    fs::rename(&part, &to).map_err(|why| format!("{}: {why}", to.display()))
}

/// Returns the library that ranks must preload to yield their core while they wait;
/// `None` if they can do so themselves.
pub(crate) fn yielding(
    library: MpiLibrary,
    programs: &Programs,
) -> Result<Option<PathBuf>, String> {
    (!library.yields())
        .then(|| programs.library(YIELD_WHEN_IDLE, "so"))
        .transpose()
}
