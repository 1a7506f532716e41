//! `downbeat regions`: saved reports of region timers.

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
    /// Show reports as text or as an HTML page: a summary of all regions, then each in detail
    Show(show::RegionsShowOptions),
    /// Show which regions became longer or shorter between two runs, and on which ranks
    Diff(diff::RegionsDiffOptions),
}

pub(crate) fn run(options: &RegionsOptions) -> Result<(), Failure> {
    match &options.command {
        RegionsCommand::Show(options) => show::run(options),
        RegionsCommand::Diff(options) => diff::run(options),
    }
}
