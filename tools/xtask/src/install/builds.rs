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

/// Ways to build what is installed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builds {
    /// As users have them.
    Installed,
    /// Programs that need no shared library; there are none with MPI.
    Static,
    /// As tests need them, too: to optimize those of several MPI libraries takes minutes.
    Tested,
    /// For the long run, where the library is optimized.
    TestedLong,
}

impl Builds {
    /// Builds the program without MPI, or that for an MPI library, and returns its path.
    pub(super) fn program(
        self,
        workspace: &Workspace,
        mpi: Option<MpiLibrary>,
    ) -> Result<PathBuf, String> {
        match (self, mpi) {
            (Self::Installed, None) => installed_program(),
            (Self::Installed, Some(library)) => installed_mpi_program(workspace, library),
            (Self::Static, None) => static_program(workspace),
            (Self::Static, Some(library)) => {
                Err(format!("a static program cannot load {}", library.suffix()))
            }
            (_, None) => programs(OPEN_MPI, workspace)?.executable(PROGRAM),
            (_, Some(library)) => programs(library, workspace)?.executable(MPI_PROGRAM),
        }
    }

    /// Builds libdownbeat without MPI, or for an MPI library.
    pub(super) fn library(
        self,
        workspace: &Workspace,
        mpi: Option<MpiLibrary>,
    ) -> Result<Programs, String> {
        let profile = match (self, mpi) {
            (Self::Tested, Some(library)) => return programs(library, workspace),
            (Self::Tested, None) => "dev",
            (Self::TestedLong, _) => "release",
            _ => INSTALLED_PROFILE,
        };
        installed_library(workspace, profile, mpi)
    }

    /// Builds the tracer.
    pub(super) fn tracer(
        self,
        workspace: &Workspace,
        library: MpiLibrary,
    ) -> Result<Programs, String> {
        match self {
            Self::Tested | Self::TestedLong => programs(library, workspace),
            _ => installed_tracer(workspace, library),
        }
    }
}

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

/// Builds the program without MPI as it is installed.
pub(crate) fn installed_program() -> Result<PathBuf, String> {
    let words =
        format!("cargo build --profile {INSTALLED_PROFILE} -p downbeat-cli --bin {PROGRAM}");
    Programs::build(&mut command(&words))?.executable(PROGRAM)
}

fn static_program(workspace: &Workspace) -> Result<PathBuf, String> {
    let target = format!("{ARCH}-unknown-linux-musl");
    let mut build = command(&format!(
        "cargo build --profile {INSTALLED_PROFILE} -p downbeat-cli --bin {PROGRAM} --config profile.{INSTALLED_PROFILE}.strip=true"
    ));
    build.args(["--target", &target, "--target-dir"]);
    build.arg(workspace.built("static"));
    Programs::build(&mut build)?.executable(PROGRAM)
}
