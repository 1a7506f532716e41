//! Builds of the programs that are installed.

use std::path::PathBuf;

use downbeat_launch::command::command;
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::mpi_builds::{MPI_PROGRAM, programs, released_mpi_program};
use crate::programs::Programs;
use crate::workspace::Workspace;

/// The program without MPI.
pub(super) const PROGRAM: &str = "downbeat";

/// Builds the program without MPI, or that for an MPI library, and returns its path.
pub(crate) type BuildProgram = fn(&Workspace, Option<MpiLibrary>) -> Result<PathBuf, String>;

/// Builds a program as its users do.
pub(crate) fn released(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    if let Some(library) = mpi {
        return released_mpi_program(workspace, library);
    }
    let words = format!("cargo build --release -p downbeat-cli --bin {PROGRAM}");
    Programs::build(&mut command(&words))?.executable(PROGRAM)
}

/// Returns a program that the tests build, too: to optimize those of several MPI libraries takes minutes.
pub(crate) fn tested(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    let name = mpi.map_or(PROGRAM, |_| MPI_PROGRAM);
    programs(mpi.unwrap_or(OPEN_MPI), workspace)?.executable(name)
}
