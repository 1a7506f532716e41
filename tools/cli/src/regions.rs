//! Reports of region timers, as programs saved them.

mod diff;
mod page;
mod show;

use clap::{Args, Subcommand};
use downbeat_common::Failure;

#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows reports as text or as a page: a summary of all regions, then each in detail
    Show(show::Options),
    /// Says which regions grew or shrank from one run to another, and on which ranks
    Diff(diff::Options),
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.command {
        Command::Show(options) => show::run(options),
        Command::Diff(options) => diff::run(options),
    }
}
