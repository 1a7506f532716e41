//! Commands for those who package a program: they write its man pages and its shell completions.

mod man_page;

use std::path::{Path, PathBuf};

use clap::{Command, Subcommand};
use clap_complete::Shell;
use downbeat_files::create_folder;

use crate::output::print;
use crate::{Failure, Outputs, write_text};

/// Hidden commands of both programs.
#[derive(Clone, Debug, Subcommand)]
pub enum PackagingCommand {
    /// Write the man pages of the program and of its commands
    #[command(hide = true)]
    Man {
        /// Folder for the pages
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the completion script for a shell
    #[command(hide = true)]
    Completions {
        /// Shell that reads the script
        shell: Shell,
    },
}

impl PackagingCommand {
    /// Runs the command for a program with this command line.
    ///
    /// # Errors
    /// If the folder, a page in it or standard output cannot be written.
    pub fn run(&self, program: Command) -> Result<(), Failure> {
        match self {
            Self::Man { folder } => write_pages(program, folder),
            Self::Completions { shell } => print(&completions(&program, *shell)),
        }
    }
}

fn write_pages(program: Command, folder: &Path) -> Result<(), Failure> {
    let option = "DIR";
    Outputs::default().folder(option, folder, man_page::SECTION)?;
    create_folder(folder).map_err(|why| Failure::option(option, why))?;
    for page in man_page::of_program(program).map_err(Failure::run)? {
        write_text(option, &folder.join(page.file), &page.text)?;
    }
    Ok(())
}

/// Returns the script that completes the command line of a program, except its hidden commands.
fn completions(program: &Command, shell: Shell) -> String {
    let shown = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let mut shown = Command::new(program.get_name().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .args(program.get_arguments().cloned())
        .subcommands(shown.cloned());
    let mut script = vec![];
    clap_complete::generate(shell, &mut shown, program.get_name(), &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
