//! Builds of the programs that are installed.

use std::env::consts::ARCH;
use std::path::PathBuf;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use crate::mpi_builds::{
    INSTALLED_PROFILE, MPI_PROGRAM, build_for, installed_mpi_program, programs,
};
use crate::programs::Programs;
use crate::workspace::Workspace;

/// The program without MPI.
pub(super) const PROGRAM: &str = "downbeat";

/// Builds what is installed, in one of two ways.
#[derive(Clone, Copy)]
pub(crate) struct Builds {
    /// Builds the program without MPI, or that for an MPI library, and returns its path.
    pub(super) program: fn(&Workspace, Option<MpiLibrary>) -> Result<PathBuf, String>,
    /// Profile of libdownbeat, which is also the folder that it goes to.
    pub(super) library: &'static str,
    /// Profile of the tracer, and the folder that it goes to.
    tracer: (&'static str, &'static str),
}

/// Builds as users have them.
pub(crate) const INSTALLED: Builds = Builds {
    program: installed,
    library: INSTALLED_PROFILE,
    tracer: (INSTALLED_PROFILE, INSTALLED_PROFILE),
};

/// Builds of programs that need no shared library; there are none with MPI.
pub(crate) const STATIC: Builds = Builds {
    program: without_libraries,
    ..INSTALLED
};

/// Builds that the tests make, too: to optimize those of several MPI libraries takes minutes.
pub(crate) const TESTED: Builds = Builds {
    program: tested,
    library: "release",
    tracer: ("dev", "debug"),
};

impl Builds {
    /// Builds the tracer, and returns its path.
    pub(super) fn tracer(
        self,
        workspace: &Workspace,
        library: MpiLibrary,
    ) -> Result<PathBuf, String> {
        let (profile, folder) = self.tracer;
        let words =
            format!("cargo build -p downbeat-tracer --lib --features mpi --profile {profile}");
        let mut build = command(&words);
        build_for(library, workspace, &mut build);
        shell::run(&mut build)?;
        let built = workspace.built(library.suffix()).join(folder);
        Ok(built.join("libdownbeat_tracer.so"))
    }
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
