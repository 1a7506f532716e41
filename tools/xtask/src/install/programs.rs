//! Installation of the programs, with their man pages and shell completions, which they
//! write themselves.

use std::path::Path;
use std::process::Command;

use downbeat_launch::Outcome;
use downbeat_launch::command as shell;
use downbeat_launch::mpi::MpiLibrary;

use super::builds::PROGRAM;
use super::{Installer, copy, link, write};
use crate::mpi_builds::MPI_PROGRAM;

/// Shells with the folders of their completions, and the names of the files, where `*` is
/// that of the program.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("bash", "share/bash-completion/completions", "*"),
    ("zsh", "share/zsh/site-functions", "_*"),
    ("fish", "share/fish/vendor_completions.d", "*.fish"),
];

impl Installer<'_> {
    /// Installs the program without MPI.
    pub(crate) fn program(&self) -> Outcome {
        let built = self.builds.program(self.workspace, None)?;
        copy(&built, &self.place("bin", PROGRAM)?)?;
        self.documents(PROGRAM, &built, None)
    }

    /// Installs the MPI program for each library; that of the first also has the name
    /// without the library.
    pub(super) fn mpi_programs(&self) -> Outcome {
        for library in &self.wanted.mpi {
            let built = self.builds.program(self.workspace, Some(*library))?;
            copy(&built, &self.place("bin", &mpi_program(*library))?)?;
        }
        let Some(first) = self.wanted.mpi.first() else {
            return Ok(());
        };
        let name = mpi_program(*first);
        link(&name, &self.place("bin", MPI_PROGRAM)?)?;
        let path = self.place("bin", &name)?;
        self.documents(MPI_PROGRAM, &path, Some(*first))
    }

    /// Installs the man pages and completions that a program writes. An MPI program does
    /// so without a launcher, as its only rank.
    fn documents(&self, name: &str, program: &Path, mpi: Option<MpiLibrary>) -> Outcome {
        let start = |arguments: &[&str]| {
            let mut start = Command::new(program);
            start.args(arguments);
            start.envs(mpi.into_iter().flat_map(MpiLibrary::environment));
            start
        };
        let pages = self.place("share/man/man1", "")?;
        shell::run(start(&["man"]).arg(pages))?;
        for (shell, folder, file) in COMPLETIONS {
            let script = shell::read(&mut start(&["completions", shell]))?;
            write(&self.place(folder, &file.replace('*', name))?, &script)?;
        }
        Ok(())
    }
}

fn mpi_program(library: MpiLibrary) -> String {
    format!("{MPI_PROGRAM}.{}", library.suffix())
}
