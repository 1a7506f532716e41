//! Tables of the programs as they are installed: clocks of ranks that share cores, costs
//! of recording, reproducibility.
//!
//! `cargo xtask bench` builds the programs, and passes their paths in the environment
//! variables of [`downbeat_launch::environment`]. The first argument is the table; with
//! `--gate`, the exit code is 1 if a promised bound is missed.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "output of the benchmark"
)]

mod crowded;
mod large_recording;
mod recorder;
mod recording;
mod reproducibility;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use downbeat_launch::Outcome;

fn main() -> ExitCode {
    match print_table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn print_table() -> Outcome {
    // Where the printed commands work.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    env::set_current_dir(&root).map_err(|why| format!("{}: {why}", root.display()))?;
    let gate = env::args().any(|argument| argument == "--gate");
    match env::args().nth(1).as_deref() {
        Some("crowded") => crowded::print_table(gate),
        Some("recording") => recording::print_table(gate),
        Some("large-recording") => large_recording::print_table(gate),
        Some("reproducibility") => reproducibility::print_table(gate),
        _ => Err("tables: crowded, recording, large-recording, reproducibility".to_owned()),
    }
}

/// Reads a variable that `cargo xtask bench` sets.
fn variable(name: &str) -> Result<PathBuf, String> {
    env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| format!("{name} is not set; run: cargo xtask bench"))
}

/// Returns a path for files of tables.
fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}
