//! Builds against an MPI library, each library in a target directory of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::args::Depth;
use crate::programs::Programs;
use crate::workspace::{Package, Target, Workspace};

/// Profile of what is installed, packaged and measured.
pub(crate) const INSTALLED_PROFILE: &str = "dist";

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
pub(crate) fn everything(workspace: &Workspace, depth: Depth, words: &str) -> Command {
    let mut cargo = beside_everything(workspace, depth, words);
    cargo.arg("--workspace");
    if depth == Depth::Quick {
        cargo.args(workspace.features_without_mpi(false));
    } else {
        cargo.arg("--all-features");
    }
    cargo
}

/// Makes cargo build other features where [`everything`] builds, so that common
/// dependencies are built once.
pub(crate) fn beside_everything(workspace: &Workspace, depth: Depth, words: &str) -> Command {
    let mut cargo = command(words);
    if depth > Depth::Quick {
        build_for(OPEN_MPI, workspace, &mut cargo);
    } else {
        // Not where a developer builds, with other settings.
        cargo.arg("--target-dir").arg(workspace.built("quick"));
    }
    cargo
}

/// Makes cargo work on all packages that can use MPI at once, so that their common
/// dependencies have one set of features and are built once.
pub(crate) fn for_all(library: MpiLibrary, workspace: &Workspace, words: &str) -> Command {
    let mut cargo = command(words);
    cargo.args(with_mpi(workspace).flat_map(|package| ["-p", &package.name]));
    build_for(library, workspace, &mut cargo);
    cargo
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
            target.needs_mpi() && target.kind != "bench" && is_wanted
        });
        for target in targets {
            build.args([&format!("--{}", target.kind), &target.name]);
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

/// Builds the MPI program as it is installed.
pub(crate) fn installed_mpi_program(
    workspace: &Workspace,
    library: MpiLibrary,
) -> Result<PathBuf, String> {
    let mut bins = with_mpi(workspace)
        .flat_map(|package| package.targets_of("bin").map(move |bin| (package, bin)));
    let found = bins.find(|(_, bin)| bin.name == MPI_PROGRAM);
    let (package, program) = found.ok_or(format!("there is no {MPI_PROGRAM}"))?;
    build_one(
        &format!("cargo build --profile {INSTALLED_PROFILE}"),
        workspace,
        library,
        package,
        program,
    )
}

/// Builds one target of a package with the features that it needs.
pub(crate) fn build_one(
    words: &str,
    workspace: &Workspace,
    library: MpiLibrary,
    package: &Package,
    program: &Target,
) -> Result<PathBuf, String> {
    let mut build = command(words);
    build
        .args([
            "-p",
            &package.name,
            &format!("--{}", program.kind),
            &program.name,
        ])
        .args(program.feature_arguments(package));
    build_for(library, workspace, &mut build);
    Programs::build(&mut build)?.executable(&program.name)
}
