//! `downbeat`: which clocks this machine has, what each costs and how far to trust it.

mod calibrate;
mod cli;
mod clocks;
mod cluster;
mod simulate;
mod sync;

use std::process::ExitCode;

fn main() -> ExitCode {
    match downbeat_common::cli::parse().and_then(cli::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("downbeat"),
    }
}
