//! `downbeat trace waits`: time in MPI, and the part that ranks lose because they wait for others.

mod report;
mod tables;

use std::env;
use std::path::PathBuf;

use clap::Args;
use downbeat_common::cli::{VerifyOptions, whole_number};
use downbeat_common::trace::files;
use downbeat_common::{Failure, PrintOptions, Text, units};
use downbeat_trace::calls::{CallFinding, CallTimes};
use downbeat_trace::waits::WaitStates;

use super::walk::walk;

pub(super) use report::WaitReport;
pub(super) use tables::add_waits;

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
    /// Trace: an OTF2 archive, named by its folder or anchor file, text, *.dbt, or a .json or .json.gz file of Kineto or Chrome
    #[arg(value_name = "TRACE", value_parser = files::path_parser())]
    trace: PathBuf,
    /// Maximum number of locations, and of regions, to list
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = whole_number::<usize>(0..=u64::MAX), allow_hyphen_values = true)]
    top: usize,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &TraceWaitsOptions) -> Result<(), Failure> {
    let (mut states, mut times) = (WaitStates::default(), CallTimes::default());
    let mut order = MessageOrder::default();
    let beside = env::temp_dir().join("downbeat");
    let walked = walk(&options.trace, options.verify, &beside, |found| {
        states.add_finding(found);
        times.add_finding(found);
        order.take(found);
    })?;
    let report = WaitReport::new(&states.finish(), &times, &walked);
    options.print.print(
        || &report,
        || {
            let (trace, contents) = (options.trace.display(), walked.contents());
            let mut text = Text::from(format!("{trace}: {contents}\n{}", walked.left_out()));
            text += order.warning();
            text += tables::text(&report, options.top);
            text
        },
    )
}

/// Numbers of messages, and of those that were received before they were sent.
#[derive(Debug, Default)]
struct MessageOrder {
    messages: u64,
    reversed: u64,
}

impl MessageOrder {
    fn take(&mut self, found: &CallFinding<'_>) {
        if let CallFinding::Message { send, receive } = found {
            self.messages += 1;
            self.reversed += u64::from(receive.time < send.time);
        }
    }

    /// Tells that times by such clocks show no true wait states, if that is so.
    fn warning(&self) -> String {
        if self.reversed == 0 {
            return String::new();
        }
        format!(
            "{} of {} received before they were sent:\n\
             the times must be corrected first (downbeat trace correct)\n",
            units::count(self.reversed),
            match self.messages {
                1 => "1 message is".to_owned(),
                all => format!("{} messages are", units::count(all)),
            }
        )
    }
}
