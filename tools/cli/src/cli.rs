//! The command line.

use clap::{Parser, Subcommand};
use downbeat_common::Failure;

use crate::experiments::{analyze, compare, reproducibility, samplesize};
use crate::{bench, calibrate, clocks, demonstration, regions, report, run, simulate, sync, trace};

/// One precise clock for the ranks of a parallel program, and what the clocks of a machine are worth.
#[derive(Debug, Parser)]
#[command(
    name = "downbeat",
    version,
    arg_required_else_help = false,
    after_help = "Without a command it shows what a global clock is, in a few seconds.\n\nExamples:\n  downbeat clocks\n  \
                  downbeat calibrate --duration 1s --repeat 5\n  downbeat sync --ranks 2 --algorithm hca3/1000/skampi/100"
)]
pub(crate) struct DownbeatArguments {
    #[command(subcommand)]
    command: Option<DownbeatCommand>,
}

#[derive(Debug, Subcommand)]
enum DownbeatCommand {
    /// Shows every time source: whether it can be used, what it costs, how fine and how trustworthy it is
    Clocks(clocks::ClocksOptions),
    /// Finds out how fast the time stamp counter counts, and how far that can be wrong
    Calibrate(calibrate::CalibrateOptions),
    /// Gives threads with wrong clocks one global clock, and shows how wrong that is in truth
    Sync(sync::ThreadSyncOptions),
    /// Tries synchronizations out on a simulated cluster of any size
    Simulate(simulate::SimulateOptions),
    /// Measures how long operations by messages between threads take
    Bench(Box<bench::ThreadBenchOptions>),
    /// Launches a program many times, and goes on after any interruption where it stopped
    Run(run::RunOptions),
    /// Says what the launches of an experiment found, and how many of them are needed
    Analyze(analyze::AnalyzeOptions),
    /// Says whether two experiments differ, and by how much
    Compare(compare::CompareOptions),
    /// Says how far repetitions of an experiment are apart
    Reproducibility(reproducibility::ReproducibilityOptions),
    /// Says how many observations a launch needs for a mean that is normal
    Samplesize(samplesize::SampleSizeOptions),
    /// Shows experiments on one page, with pictures
    Report(report::ReportOptions),
    /// Shows how long the regions of a program took, on which ranks
    Regions(regions::RegionsOptions),
    /// Corrects the times of traces after the fact, and checks them
    Trace(trace::Options),
}

pub(crate) fn run(arguments: DownbeatArguments) -> Result<(), Failure> {
    match arguments.command {
        None => demonstration::run(),
        Some(DownbeatCommand::Clocks(options)) => clocks::run(&options),
        Some(DownbeatCommand::Calibrate(options)) => calibrate::run(&options),
        Some(DownbeatCommand::Sync(options)) => sync::run(&options),
        Some(DownbeatCommand::Simulate(options)) => simulate::run(&options),
        Some(DownbeatCommand::Bench(options)) => bench::run(&options),
        Some(DownbeatCommand::Run(options)) => run::run(&options),
        Some(DownbeatCommand::Analyze(options)) => analyze::run(&options),
        Some(DownbeatCommand::Compare(options)) => compare::run(&options),
        Some(DownbeatCommand::Reproducibility(options)) => reproducibility::run(&options),
        Some(DownbeatCommand::Samplesize(options)) => samplesize::run(&options),
        Some(DownbeatCommand::Report(options)) => report::run(&options),
        Some(DownbeatCommand::Regions(options)) => regions::run(&options),
        Some(DownbeatCommand::Trace(options)) => trace::run(&options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        DownbeatArguments::command().debug_assert();
    }
}
