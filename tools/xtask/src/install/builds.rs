//! Builds of the programs that are installed.

use std::env::consts::ARCH;
use std::path::PathBuf;

use downbeat_launch::command::command;
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::mpi_builds::{
    INSTALLED_PROFILE, MPI_PROGRAM, build_for, installed_mpi_program, programs,
};
use crate::programs::Programs;
use crate::workspace::{MPI, Workspace};

/// The program without MPI.
pub(super) const PROGRAM: &str = "downbeat";

/// Builds what is installed, in one of two ways.
#[derive(Clone, Copy)]
pub(crate) struct Builds {
    /// Builds the program without MPI, or that for an MPI library, and returns its path.
    pub(super) program: fn(&Workspace, Option<MpiLibrary>) -> Result<PathBuf, String>,
    /// Builds libdownbeat without MPI, or for an MPI library.
    pub(super) library: fn(&Workspace, Option<MpiLibrary>) -> Result<Programs, String>,
    /// Builds the tracer.
    pub(super) tracer: fn(&Workspace, MpiLibrary) -> Result<Programs, String>,
}

/// Builds as users have them.
pub(crate) const INSTALLED: Builds = Builds {
    program: installed,
    library: |workspace, mpi| installed_library(workspace, INSTALLED_PROFILE, mpi),
    tracer: installed_tracer,
};

/// Builds of programs that need no shared library; there are none with MPI.
pub(crate) const STATIC: Builds = Builds {
    program: without_libraries,
    ..INSTALLED
};

/// Builds that the tests make, too: to optimize those of several MPI libraries takes
/// minutes.
pub(crate) const TESTED: Builds = Builds {
    program: tested,
    library: |workspace, mpi| match mpi {
        Some(library) => programs(library, workspace),
        None => installed_library(workspace, "dev", None),
    },
    tracer: |workspace, library| programs(library, workspace),
};

/// Builds for the long run, where the library is optimized.
pub(crate) const TESTED_LONG: Builds = Builds {
    library: |workspace, mpi| installed_library(workspace, "release", mpi),
    ..TESTED
};

/// Builds libdownbeat with this profile and no more features than it needs.
fn installed_library(
    workspace: &Workspace,
    profile: &str,
    mpi: Option<MpiLibrary>,
) -> Result<Programs, String> {
    let mut build = command(&format!(
        "cargo build -p downbeat-capi --lib --profile {profile}"
    ));
    match mpi {
        Some(library) => {
            build.args(["--features", MPI]);
            build_for(library, workspace, &mut build);
        }
        None => {
            build.arg("--target-dir").arg(workspace.built("capi"));
        }
    }
    Programs::build(&mut build)
}

fn installed_tracer(workspace: &Workspace, library: MpiLibrary) -> Result<Programs, String> {
    let mut build = command(&format!(
        "cargo build -p downbeat-tracer --lib --features {MPI} --profile {INSTALLED_PROFILE}"
    ));
    build_for(library, workspace, &mut build);
    Programs::build(&mut build)
}

fn installed(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    mpi.map_or_else(installed_program, |library| {
        installed_mpi_program(workspace, library)
    })
}

/// Builds the program without MPI as it is installed.
pub(crate) fn installed_program() -> Result<PathBuf, String> {
    let words =
        format!("cargo build --profile {INSTALLED_PROFILE} -p downbeat-cli --bin {PROGRAM}");
    Programs::build(&mut command(&words))?.executable(PROGRAM)
}

fn without_libraries(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    if let Some(library) = mpi {
        let name = library.suffix();
        return Err(format!("a static program cannot load {name}"));
    }
    let target = format!("{ARCH}-unknown-linux-musl");
    let mut build = command(&format!(
        "cargo build --profile {INSTALLED_PROFILE} -p downbeat-cli --bin {PROGRAM} --config profile.{INSTALLED_PROFILE}.strip=true"
    ));
    build.args(["--target", &target, "--target-dir"]);
    build.arg(workspace.built("static"));
    Programs::build(&mut build)?.executable(PROGRAM)
}

fn tested(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    let name = mpi.map_or(PROGRAM, |_| MPI_PROGRAM);
    programs(mpi.unwrap_or(OPEN_MPI), workspace)?.executable(name)
}
