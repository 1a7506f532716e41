//! Builds of the programs that are installed.

use std::env::consts::ARCH;
use std::path::PathBuf;

use downbeat_launch::command::command;
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::mpi_builds::{MPI_PROGRAM, build_for, programs};
use crate::programs::Programs;
use crate::workspace::{MPI, Workspace};

/// The program without MPI.
pub(super) const PROGRAM: &str = "downbeat";
/// How it is built, with the profile of what is installed, packaged and measured.
const PROGRAM_BUILD: &str = "cargo build --profile dist -p downbeat-cli --bin downbeat";

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
            (Self::Installed, None) => installed_program(workspace),
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
        let profile = match self {
            Self::Installed | Self::Static => "dist",
            Self::Tested => "dev",
            Self::TestedLong => "release",
        };
        // With no more features than it needs.
        let words = format!("cargo build -p downbeat-capi --lib --profile {profile}");
        match mpi {
            Some(library) if self == Self::Tested => programs(library, workspace),
            Some(library) => build_with(library, workspace, &words),
            None => build_in("capi", workspace, &words),
        }
    }

    /// Builds the tracer.
    pub(super) fn tracer(
        self,
        workspace: &Workspace,
        library: MpiLibrary,
    ) -> Result<Programs, String> {
        let words = "cargo build -p downbeat-tracer --lib --profile dist";
        match self {
            Self::Tested | Self::TestedLong => programs(library, workspace),
            Self::Installed | Self::Static => build_with(library, workspace, words),
        }
    }
}

/// Builds the program without MPI as it is installed.
pub(crate) fn installed_program(workspace: &Workspace) -> Result<PathBuf, String> {
    build_in("", workspace, PROGRAM_BUILD)?.executable(PROGRAM)
}

/// Builds the MPI program as it is installed.
pub(crate) fn installed_mpi_program(
    workspace: &Workspace,
    library: MpiLibrary,
) -> Result<PathBuf, String> {
    let words = "cargo build --profile dist -p downbeat-mpi --bin downbeat-mpi";
    build_with(library, workspace, words)?.executable(MPI_PROGRAM)
}

fn static_program(workspace: &Workspace) -> Result<PathBuf, String> {
    let options = format!("--target {ARCH}-unknown-linux-musl --config profile.dist.strip=true");
    let words = format!("{PROGRAM_BUILD} {options}");
    build_in("static", workspace, &words)?.executable(PROGRAM)
}

/// Builds without MPI, in a folder below the target directory.
fn build_in(folder: &str, workspace: &Workspace, words: &str) -> Result<Programs, String> {
    let mut build = command(words);
    Programs::build(build.arg("--target-dir").arg(workspace.built(folder)))
}

/// Builds with MPI, for this library.
pub(crate) fn build_with(
    library: MpiLibrary,
    workspace: &Workspace,
    words: &str,
) -> Result<Programs, String> {
    let mut build = command(words);
    build.args(["--features", MPI]);
    build_for(library, workspace, &mut build);
    Programs::build(&mut build)
}
