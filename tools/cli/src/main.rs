//! `downbeat`: tests of the clocks of a machine, and one global clock for many ranks, without MPI.

mod bench;
mod calibrate;
mod cli;
mod clocks;
mod cluster;
mod demonstration;
#[cfg(unix)]
mod ending;
mod experiments;
mod import;
mod memory;
#[cfg(unix)]
mod record;
mod regions;
mod report;
#[cfg(unix)]
mod run;
mod simulate;
mod sync;
mod threads;
#[cfg(unix)]
mod time;
mod trace;

use std::process::ExitCode;

fn main() -> ExitCode {
    downbeat_common::survive_file_size_limit();
    downbeat_common::trace::survive_lack_of_memory();
    match downbeat_common::cli::parse().and_then(cli::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => downbeat_common::output::report_failure(failure, "downbeat"),
    }
}
