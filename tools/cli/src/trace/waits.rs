//! `downbeat trace waits`: time in MPI, and the part that ranks lose because they wait for others.

mod html;
mod report;
mod text;

use std::env;
use std::path::PathBuf;

use clap::Args;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::{Failure, PrintOptions, Text};
use downbeat_trace::calls::CallTimes;
use downbeat_trace::waits::WaitStates;

use super::walk::walk;

pub(super) use html::add_waits;
pub(super) use report::WaitReport;

#[derive(Args, Debug)]
#[command(
    after_help = "Patterns are defined as in Scalasca 2. Late sender: a receive waits for its send. Late receiver: a send waits \
                  until its receive is posted. Late root: members of a broadcast or scatter wait for the root. Early root: \
                  the root of a gather or reduction waits for the first member that sends. Wait at N x N, wait at barrier: \
                  members wait for the last one. Early member: a member of a prefix reduction waits for those of lower \
                  ranks.\n\n\
                  The clocks of the trace should be global, or corrected: see `downbeat trace correct`.\n\n\
                  Example:\n  downbeat trace generate -o trace.dbt && downbeat trace waits trace.dbt"
)]
pub(crate) struct TraceWaitsOptions {
    /// Trace: *.dbt, *.dbtb, or the anchor file of an OTF2 archive
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Maximum number of locations, and of regions, to list
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &TraceWaitsOptions) -> Result<(), Failure> {
    let TraceWaitsOptions {
        trace,
        top,
        verify,
        print,
    } = options;
    let mut observers = (WaitStates::default(), CallTimes::default());
    let beside = env::temp_dir().join("downbeat");
    let walked = walk(trace, *verify, &beside, &mut observers)?;
    let (states, times) = observers;
    let report = WaitReport::new(&states.finish(), &times, &walked);
    let text = || {
        let mut text = Text::from(format!(
            "{}: {}\n{}",
            trace.display(),
            walked.contents(),
            walked.left_out()
        ));
        text += text::text(&report, *top);
        text
    };
    print.print(|| &report, text)
}
