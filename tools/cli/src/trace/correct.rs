//! `downbeat trace correct`: correction of the timestamps of a trace.

use std::path::PathBuf;

use clap::Args;
use downbeat_common::cli::whole_number;
use downbeat_common::trace::CorrectionOptions;
use downbeat_common::{Failure, cores};
use downbeat_sync::{ThreadComm, block_on_ready};

use super::store::{self, StoreOption};

#[derive(Args, Debug)]
#[command(
    after_help = "First, all timestamps are mapped to one clock by the sessions in which clocks were compared, if the trace has \
                  any. Then a controlled logical clock moves events forward, so that no message is received before it can \
                  have arrived, and no collective operation ends before all members that it depends on have begun it.\n\n\
                  IN is an OTF2 archive, named by its folder or its anchor file NAME.otf2, or a text file .dbt; OUT is of the same kind. \
                  The corrected archive has other clock offsets, and rewritten events only if needed.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && \\\n    \
                  downbeat trace correct wrong.dbt -o right.dbt\n  \
                  downbeat trace generate -o wrong --truth truth && \\\n    \
                  downbeat trace correct wrong -o right --truth truth \\\n    \
                  --pre-synchronization linear --latencies 200ns,500ns,2us \\\n    \
                  --page correction.html"
)]
pub(crate) struct TraceCorrectOptions {
    #[command(flatten)]
    correction: CorrectionOptions,
    /// Number of threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<usize>(1..=1024), allow_hyphen_values = true)]
    threads: Option<usize>,
    #[command(flatten)]
    store: StoreOption,
}

pub(crate) fn run(options: &TraceCorrectOptions) -> Result<(), Failure> {
    let correction = &options.correction;
    let _unfinished = correction.begin()?;
    let traces = [&correction.input].into_iter().chain(&correction.truth);
    let store = options
        .store
        .store(traces.map(PathBuf::as_path), &correction.output)?;
    let workers = options.threads.unwrap_or_else(cores);
    let comm = ThreadComm::alone();
    let corrected = block_on_ready(correction.correct(workers, &store, &comm));
    let document = corrected.map_err(|why| store::failure(&store, why))?;
    correction.show(&document)
}
