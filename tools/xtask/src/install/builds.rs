//! Builds of the programs that are installed.

use std::path::PathBuf;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::mpi_builds::{MPI_PROGRAM, build_for, programs, released_mpi_program};
use crate::programs::Programs;
use crate::workspace::Workspace;

/// The program without MPI.
pub(super) const PROGRAM: &str = "downbeat";

/// Builds what is installed, in one of two ways.
#[derive(Clone, Copy)]
pub(crate) struct Builds {
    /// Builds the program without MPI, or that for an MPI library, and returns its path.
    pub(super) program: fn(&Workspace, Option<MpiLibrary>) -> Result<PathBuf, String>,
    /// Options of the build of the tracer, and the folder that it goes to.
    tracer: (&'static str, &'static str),
}

/// Builds as users have them.
pub(crate) const RELEASED: Builds = Builds {
    program: released,
    tracer: ("--release", "release"),
};

/// Builds that the tests make, too: to optimize those of several MPI libraries takes minutes.
pub(crate) const TESTED: Builds = Builds {
    program: tested,
    tracer: ("", "debug"),
};

impl Builds {
    /// Builds the tracer, and returns its path.
    pub(super) fn tracer(
        self,
        workspace: &Workspace,
        library: MpiLibrary,
    ) -> Result<PathBuf, String> {
        let (options, folder) = self.tracer;
        let words = format!("cargo build -p downbeat-tracer --lib --features mpi {options}");
        let mut build = command(&words);
        build_for(library, workspace, &mut build);
        shell::run(&mut build)?;
        let built = workspace.built(library.suffix()).join(folder);
        Ok(built.join("libdownbeat_tracer.so"))
    }
}

fn released(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    if let Some(library) = mpi {
        return released_mpi_program(workspace, library);
    }
    let words = format!("cargo build --release -p downbeat-cli --bin {PROGRAM}");
    Programs::build(&mut command(&words))?.executable(PROGRAM)
}

fn tested(workspace: &Workspace, mpi: Option<MpiLibrary>) -> Result<PathBuf, String> {
    let name = mpi.map_or(PROGRAM, |_| MPI_PROGRAM);
    programs(mpi.unwrap_or(OPEN_MPI), workspace)?.executable(name)
}
