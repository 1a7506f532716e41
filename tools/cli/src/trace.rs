//! `downbeat trace`: correction and checks of the timestamps of traces.

mod check;
mod convert;
mod correct;
mod generate;
mod merge;
mod show;
mod store;
mod waits;
mod walk;

use std::ffi::OsStr;
use std::path::Path;

use clap::{Args, Parser, Subcommand};
use downbeat_common::Failure;

#[cfg(unix)]
pub(crate) use merge::{MergedClocks, merge_into};

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
    /// Convert a trace to or from OTF2 and text, from Chrome's JSON, or to Perfetto or Parquet
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

/// Words of a command on traces, parsed on their own.
#[derive(Debug, Parser)]
struct TraceWords {
    #[command(flatten)]
    options: TraceOptions,
}

/// Runs a command on traces with the options that it has by default.
pub(crate) fn run_words<const N: usize>(words: [&OsStr; N]) -> Result<(), Failure> {
    let all = [OsStr::new("trace")].into_iter().chain(words);
    let parsed = TraceWords::try_parse_from(all).map_err(Failure::run)?;
    run(&parsed.options)
}

/// Corrects a recorded trace. Its clocks are synchronized: only what is impossible is
/// moved, and not what seems too fast. Waits that complete late make latencies of
/// messages seem longer than they are.
pub(crate) fn correct_recorded(measured: &Path, corrected: &Path) -> Result<(), Failure> {
    let [latencies, none, output] = ["--latencies", "0ns,0ns,0ns", "--output"].map(OsStr::new);
    run_words([
        "correct".as_ref(),
        measured.as_ref(),
        latencies,
        none,
        output,
        corrected.as_ref(),
    ])
}
