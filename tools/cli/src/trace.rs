//! `downbeat trace`: times of traces, corrected after the fact and checked.

mod check;
mod convert;
mod correct;
mod generate;

use clap::{Args, Subcommand};
use downbeat_common::Failure;

#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Corrects times so that no message arrives before it can have arrived
    Correct(Box<correct::Options>),
    /// Says what cannot be true of times; the exit code is 1 if there is anything
    Check(check::Options),
    /// Writes a trace in another format: text, bytes, or that of Perfetto, which shows it
    Convert(convert::Options),
    /// Makes a trace of a program that never ran, with clocks that are wrong in a known way
    Generate(Box<generate::Options>),
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    match &options.command {
        Command::Correct(options) => correct::run(options),
        Command::Check(options) => check::run(options),
        Command::Convert(options) => convert::run(options),
        Command::Generate(options) => generate::run(options),
    }
}
