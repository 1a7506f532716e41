//! `downbeat trace`: correction and checks of the timestamps of traces.

mod check;
mod convert;
mod correct;
mod generate;
mod merge;
mod show;
mod waits;
mod walk;

use std::path::Path;

use clap::{Args, Parser, Subcommand};
use downbeat_common::Failure;

pub(crate) use merge::merge_into;

#[derive(Args, Debug)]
pub(crate) struct TraceOptions {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Correct timestamps so that no message is received before it can have arrived
    Correct(Box<correct::TraceCorrectOptions>),
    /// List violations of causality in a trace; the exit code is 1 if there are any
    Check(check::TraceCheckOptions),
    /// Show a part of a trace as a page with a timeline, by one clock or several
    Show(Box<show::TraceShowOptions>),
    /// List the time that ranks lose because they wait for others
    Waits(waits::TraceWaitsOptions),
    /// Convert a trace to or from OTF2 and Chrome's JSON, to Perfetto or Parquet, or between text and binary
    Convert(convert::TraceConvertOptions),
    /// Make one trace of the recordings of all ranks
    Merge(merge::TraceMergeOptions),
    /// Generate a synthetic trace with known clock errors
    Generate(Box<generate::TraceGenerateOptions>),
}

pub(crate) fn run(options: &TraceOptions) -> Result<(), Failure> {
    match &options.command {
        TraceCommand::Correct(options) => correct::run(options),
        TraceCommand::Check(options) => check::run(options),
        TraceCommand::Show(options) => show::run(options),
        TraceCommand::Waits(options) => waits::run(options),
        TraceCommand::Convert(options) => convert::run(options),
        TraceCommand::Merge(options) => merge::run(options),
        TraceCommand::Generate(options) => generate::run(options),
    }
}

/// Options of a correction, parsed on their own.
#[derive(Debug, Parser)]
struct CorrectionCommand {
    #[command(flatten)]
    options: correct::TraceCorrectOptions,
}

/// Corrects a trace as `downbeat trace correct` does without options.
pub(crate) fn correct_with_defaults(input: &Path, output: &Path) -> Result<(), Failure> {
    let words = [
        "correct".as_ref(),
        input.as_os_str(),
        "--output".as_ref(),
        output.as_os_str(),
    ];
    let command = CorrectionCommand::try_parse_from(words).map_err(Failure::run)?;
    correct::run(&command.options)
}
