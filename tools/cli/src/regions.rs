//! Reports of region timers, as programs saved them.

mod diff;
mod page;
mod show;

use clap::{Args, Subcommand};
use downbeat_common::Failure;

#[derive(Args, Debug)]
pub(crate) struct RegionsOptions {
    #[command(subcommand)]
    command: RegionsCommand,
}

#[derive(Debug, Subcommand)]
enum RegionsCommand {
    /// Shows reports as text or as a page: a summary of all regions, then each in detail
    Show(show::RegionsShowOptions),
    /// Says which regions grew or shrank from one run to another, and on which ranks
    Diff(diff::RegionsDiffOptions),
}

pub(crate) fn run(options: &RegionsOptions) -> Result<(), Failure> {
    match &options.command {
        RegionsCommand::Show(options) => show::run(options),
        RegionsCommand::Diff(options) => diff::run(options),
    }
}
