//! The command line.

use clap::{Parser, Subcommand};
use downbeat_common::Failure;

use crate::{calibrate, clocks, simulate, sync};

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
    /// Tries synchronizations out on a simulated cluster of any size
    Simulate(simulate::Options),
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command.unwrap_or(Command::Clocks(clocks::Options::default())) {
        Command::Clocks(options) => clocks::run(&options),
        Command::Calibrate(options) => calibrate::run(&options),
        Command::Sync(options) => sync::run(&options),
        Command::Simulate(options) => simulate::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
