//! `downbeat trace correct`: correction of the timestamps of a trace.

mod streamed;

use std::fs;

use clap::{Args, ValueEnum};
use downbeat_common::trace::{CorrectionOptions, files};
use downbeat_common::{Failure, block_on_ready_failure, cores};
use downbeat_sync::ThreadComm;

#[derive(Args, Debug)]
#[command(
    after_help = "First, all timestamps are mapped to one clock by the sessions in which clocks were compared, if the trace has \
                  any. Then a controlled logical clock moves events forward, so that no message is received before it can \
                  have arrived, and no collective operation ends before all members that it depends on have begun it.\n\n\
                  The name of a file selects its format: .dbt is text, .dbtb binary. NAME.otf2 is the anchor file of an \
                  OTF2 archive; the corrected archive has other clock offsets, and rewritten events only if needed.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && \\\n    \
                  downbeat trace correct wrong.dbt -o right.dbt\n  \
                  downbeat trace generate -o wrong.dbtb --truth truth.dbtb && \\\n    \
                  downbeat trace correct wrong.dbtb -o right.dbtb --truth truth.dbtb \\\n    \
                  --pre-synchronization linear --latencies 200ns,500ns,2us \\\n    \
                  --page correction.html"
)]
pub(crate) struct TraceCorrectOptions {
    #[command(flatten)]
    correction: CorrectionOptions,
    /// Number of threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: Option<u32>,
    /// Hold events in temporary files next to the output instead of in memory, for traces larger than memory; the result is
    /// the same. They need about twice the space of a .dbtb file [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = StreamingOption::Auto, num_args = 0..=1, require_equals = true, default_missing_value = "always", hide_default_value = true)]
    streaming: StreamingOption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StreamingOption {
    /// Stream traces of more than 2 GiB, if --truth is not given and no events wait for each other in a cycle
    Auto,
    /// Stream, or fail if that is not possible
    Always,
    /// Hold all events in memory
    Never,
}

/// Minimum size of traces to stream by default; in memory, events take about five times the size of the file.
const LARGE: u64 = 2 << 30;

pub(crate) fn run(options: &TraceCorrectOptions) -> Result<(), Failure> {
    let _unfinished = options.correction.begin()?;
    let streamed = if options.streams()? {
        options.correct_streamed()?
    } else {
        None
    };
    let is_streamed = streamed.is_some();
    let in_memory = || {
        let workers = options
            .threads
            .map_or_else(cores, |threads| threads as usize);
        let comm = ThreadComm::alone();
        block_on_ready_failure(options.correction.correct(workers, &comm))
    };
    let (document, names) = streamed.map_or_else(in_memory, Ok)?;
    options.correction.show(&document, &names, is_streamed)
}

impl TraceCorrectOptions {
    /// Returns true if the trace is to be streamed.
    fn streams(&self) -> Result<bool, Failure> {
        if self.correction.only_pre_synchronize {
            return match self.streaming {
                StreamingOption::Always => Err(Failure::option(
                    "--only-pre-synchronize",
                    "cannot be combined with --streaming",
                )),
                _ => Ok(false),
            };
        }
        match (self.streaming, &self.correction.truth) {
            (StreamingOption::Always, Some(_)) => Err(Failure::option(
                "--truth",
                "cannot be combined with --streaming",
            )),
            (StreamingOption::Always, None) => Ok(true),
            (StreamingOption::Never, _) | (StreamingOption::Auto, Some(_)) => Ok(false),
            (StreamingOption::Auto, None) => {
                let all = files::all_of(&self.correction.input).into_iter();
                let lengths = all.filter_map(|file| Some(fs::metadata(file).ok()?.len()));
                Ok(lengths.sum::<u64>() > LARGE)
            }
        }
    }
}
