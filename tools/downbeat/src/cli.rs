//! The command line.

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::{calibrate, clocks, sync};

/// Which clocks this machine has, what each costs and how far to trust it.
#[derive(Debug, Parser)]
#[command(
    name = "downbeat",
    version,
    arg_required_else_help = false,
    after_help = "Without a command it does what `downbeat clocks` does.\n\nExamples:\n  downbeat clocks\n  downbeat calibrate --duration 1s --repeat 5"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows every time source: whether it can be used, what it costs, how fine and how trustworthy it is
    Clocks(clocks::Options),
    /// Finds out how fast the time stamp counter counts, and how far that can be wrong
    Calibrate(calibrate::Options),
    /// Gives threads with wrong clocks one global clock, and shows how wrong that is in truth
    Sync(sync::Options),
}

/// Reads the command line.
pub(crate) fn parse() -> Result<Arguments, Failure> {
    Arguments::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Failure::Help(error.to_string()),
        _ => Failure::Input(first_paragraph(&error.to_string())),
    })
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command.unwrap_or(Command::Clocks(clocks::Options::default())) {
        Command::Clocks(options) => clocks::run(&options),
        Command::Calibrate(options) => calibrate::run(&options),
        Command::Sync(options) => sync::run(&options),
    }
}

/// What clap says in its first paragraph, on one line; the rest is usage.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let line = lines.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn only_the_first_paragraph_is_kept() {
        assert_eq!(first_paragraph("error: bad\n  <FILE>\n\nUsage: x\n"), "bad <FILE>");
    }
}
