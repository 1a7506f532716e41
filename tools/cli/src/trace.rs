//! `downbeat trace`: correction and checks of the timestamps of traces.

mod check;
mod convert;
mod correct;
mod generate;

use clap::{Args, Subcommand};
use downbeat_common::Failure;

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
    /// Convert a trace to or from OTF2 and Chrome's JSON, to Perfetto or Parquet, or between text and binary
    Convert(convert::TraceConvertOptions),
    /// Generate a synthetic trace with known clock errors
    Generate(Box<generate::TraceGenerateOptions>),
}

pub(crate) fn run(options: &TraceOptions) -> Result<(), Failure> {
    match &options.command {
        TraceCommand::Correct(options) => correct::run(options),
        TraceCommand::Check(options) => check::run(options),
        TraceCommand::Convert(options) => convert::run(options),
        TraceCommand::Generate(options) => generate::run(options),
    }
}
