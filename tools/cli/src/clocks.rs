//! `downbeat clocks`: all time sources of a machine and their properties.

mod gather;
mod recommend;
mod report;
mod text;

use std::io::{self, IsTerminal};

use clap::Args;
use downbeat_common::{CalibrationOptions, Failure, output};

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  downbeat clocks --json | jq .recommended")]
pub(crate) struct ClocksOptions {
    /// Cores to compare, such as 0,2,4 [default: all cores that this process may use]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    cores: Option<Vec<u32>>,
    #[command(flatten)]
    calibration: CalibrationOptions,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &ClocksOptions) -> Result<(), Failure> {
    let report = gather::gather(options.cores.as_deref(), &options.calibration)?;
    if options.json {
        output::print_json(&report)
    } else {
        output::print(&text::render(&report, io::stdout().is_terminal()))
    }
}
