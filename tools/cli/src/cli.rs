//! Command line of `downbeat`.

use clap::{CommandFactory, Parser, Subcommand};
use downbeat_common::{Failure, PackagingCommand};

use crate::experiments::{analyze, compare, guidelines, reproducibility, samplesize};
use crate::{
    bench, calibrate, clocks, demonstration, import, regions, report, simulate, sync, trace,
};
#[cfg(unix)]
use crate::{record, run, time};

/// Measure with one global clock for all ranks of a parallel program, and test the clocks of a machine.
#[derive(Debug, Parser)]
#[command(
    name = "downbeat",
    version,
    arg_required_else_help = false,
    after_help = "Without a command, a short demonstration of a global clock runs.\n\nExamples:\n  downbeat clocks\n  \
                  downbeat calibrate --duration 1s --repeat 5\n  downbeat sync --ranks 2 --algorithm hca3/1000/skampi/100"
)]
pub(crate) struct DownbeatArguments {
    #[command(subcommand)]
    command: Option<DownbeatCommand>,
}

// Commands that launch programs need process groups and signals. Not a doc comment, which would be printed as help.
#[derive(Debug, Subcommand)]
enum DownbeatCommand {
    /// List all time sources with their availability, read cost, resolution and reliability
    Clocks(clocks::ClocksOptions),
    /// Measure the frequency of the processor's counter and its uncertainty
    Calibrate(calibrate::CalibrateOptions),
    /// Synchronize threads that have skewed clocks, and print the true error of the global clock
    Sync(Box<sync::ThreadSyncOptions>),
    /// Run synchronization algorithms on a simulated cluster of any size
    Simulate(simulate::SimulateOptions),
    /// Measure the run-time of communication operations between threads
    Bench(Box<bench::ThreadBenchOptions>),
    #[cfg(unix)]
    /// Launch a program many times; after an interruption, continue where it stopped
    Run(run::RunOptions),
    #[cfg(unix)]
    /// Time any command: many launches, several variants in turns, with statistics
    Time(Box<time::TimeOptions>),
    #[cfg(unix)]
    /// Time one launch; for `downbeat time`
    #[command(hide = true)]
    TimeLaunch(time::TimeLaunchOptions),
    /// Make records of the results of other suites: OSU, IMB, ReproMPI, hyperfine
    Import(import::ImportOptions),
    /// Summarize the launches of an experiment, and estimate the number of launches needed
    Analyze(analyze::AnalyzeOptions),
    /// Test whether two experiments differ, and by how much
    Compare(compare::CompareOptions),
    /// Find operations that are slower than others with the same result
    Guidelines(guidelines::GuidelineOptions),
    /// Show the spread between repetitions of an experiment
    Reproducibility(reproducibility::ReproducibilityOptions),
    /// Find the number of observations per launch from which means are normally distributed
    Samplesize(samplesize::SampleSizeOptions),
    /// Write experiments as one HTML page with plots
    Report(report::ReportOptions),
    /// Show the time that the regions of a program took on its ranks
    Regions(regions::RegionsOptions),
    #[cfg(unix)]
    /// Run an MPI program under the tracer, and make one corrected trace of it
    Record(record::RecordOptions),
    #[cfg(unix)]
    /// Run one rank of an MPI program under the tracer; for launchers
    RecordRank(record::RankOptions),
    /// Merge, correct, check and convert traces
    Trace(trace::TraceOptions),
    #[command(flatten)]
    Packaging(PackagingCommand),
}

pub(crate) fn run(arguments: DownbeatArguments) -> Result<(), Failure> {
    match arguments.command {
        None => demonstration::run(),
        Some(DownbeatCommand::Clocks(options)) => clocks::run(&options),
        Some(DownbeatCommand::Calibrate(options)) => calibrate::run(&options),
        Some(DownbeatCommand::Sync(options)) => sync::run(&options),
        Some(DownbeatCommand::Simulate(options)) => simulate::run(&options),
        Some(DownbeatCommand::Bench(options)) => bench::run(&options),
        #[cfg(unix)]
        Some(DownbeatCommand::Run(options)) => {
            run::run(&options)?;
            let reported = options.reported();
            reported.map_or(Ok(()), |(folder, option, page)| {
                report::write_after_run(folder, option, page)
            })
        }
        #[cfg(unix)]
        Some(DownbeatCommand::Time(options)) => time::run(&options),
        #[cfg(unix)]
        Some(DownbeatCommand::TimeLaunch(options)) => time::run_launch(&options),
        Some(DownbeatCommand::Import(options)) => import::run(&options),
        Some(DownbeatCommand::Analyze(options)) => analyze::run(&options),
        Some(DownbeatCommand::Compare(options)) => compare::run(&options),
        Some(DownbeatCommand::Guidelines(options)) => guidelines::run(&options),
        Some(DownbeatCommand::Reproducibility(options)) => reproducibility::run(&options),
        Some(DownbeatCommand::Samplesize(options)) => samplesize::run(&options),
        Some(DownbeatCommand::Report(options)) => report::run(&options),
        Some(DownbeatCommand::Regions(options)) => regions::run(&options),
        #[cfg(unix)]
        Some(DownbeatCommand::Record(options)) => record::run(&options),
        #[cfg(unix)]
        Some(DownbeatCommand::RecordRank(options)) => record::run_rank(&options),
        Some(DownbeatCommand::Trace(options)) => trace::run(&options),
        Some(DownbeatCommand::Packaging(command)) => command.run(DownbeatArguments::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        DownbeatArguments::command().debug_assert();
    }
}
