//! Installation of the programs, with their man pages and shell completions, which they write themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MpiLibrary, OPEN_MPI};

use super::{Installer, copy, link, write};
use crate::mpi_builds::{MPI_PROGRAM, programs, released_mpi_program};
use crate::programs::Programs;
use crate::workspace::Workspace;

const PROGRAM: &str = "downbeat";
/// Shells with the folders of their completions, and the names of the files, where `*` is that of the program.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("bash", "share/bash-completion/completions", "*"),
    ("zsh", "share/zsh/site-functions", "_*"),
    ("fish", "share/fish/vendor_completions.d", "*.fish"),
];

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

impl Installer<'_> {
    /// Installs the program without MPI.
    pub(super) fn program(&self) -> Outcome {
        let built = (self.build_program)(self.workspace, None)?;
        copy(&built, &self.place("bin", PROGRAM)?)?;
        self.documents(PROGRAM, || Command::new(&built))
    }

    /// Installs the MPI program for each library; that of the first also has the name without the library.
    pub(super) fn mpi_programs(&self) -> Outcome {
        for library in &self.wanted.mpi {
            let built = (self.build_program)(self.workspace, Some(*library))?;
            copy(&built, &self.place("bin", &mpi_program(*library))?)?;
        }
        let Some(first) = self.wanted.mpi.first() else {
            return Ok(());
        };
        let name = mpi_program(*first);
        link(&name, &self.place("bin", MPI_PROGRAM)?)?;
        let path = self.place("bin", &name)?;
        self.documents(MPI_PROGRAM, || alone(&path, *first))
    }

    /// Installs the man pages and completions that a program writes.
    fn documents(&self, name: &str, program: impl Fn() -> Command) -> Outcome {
        let pages = self.place("share/man/man1", "")?;
        shell::run(program().arg("man").arg(pages))?;
        for (shell, folder, file) in COMPLETIONS {
            let script = shell::read(program().args(["completions", shell]))?;
            write(&self.place(folder, &file.replace('*', name))?, &script)?;
        }
        Ok(())
    }
}

fn mpi_program(library: MpiLibrary) -> String {
    format!("{MPI_PROGRAM}.{}", library.suffix())
}

/// Returns the command that starts an MPI program without a launcher, as its only rank.
fn alone(program: &Path, library: MpiLibrary) -> Command {
    let mut command = Command::new(program);
    command.envs(library.environment());
    command
}
