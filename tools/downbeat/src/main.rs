//! `downbeat`: which clocks this machine has, what each costs and how far to trust it.

mod calibrate;
mod calibration;
mod cli;
mod clocks;
mod failure;
mod output;
mod progress;
mod sync;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse().and_then(cli::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
