//! `downbeat trace convert`: the same trace in another format.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::output::{count, print};
use downbeat_common::trace::{Unfinished, files, for_each_item, unwritable};
use downbeat_trace::formats::perfetto::{PerfettoSummary, PerfettoSurvey, PerfettoWriter};
use downbeat_trace::formats::{Item, TraceFormat, TraceWriter};

#[derive(Args, Debug)]
#[command(
    after_help = "A name that ends in .dbt stands for text, in .dbtb for bytes, and in .pftrace or .perfetto-trace for \
                  Perfetto, which shows it: open it in https://ui.perfetto.dev. NAME.otf2 is the anchor file of an OTF2 \
                  archive, which can be read.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && downbeat trace convert wrong.dbt wrong.pftrace\n  \
                  downbeat trace generate -o wrong.dbt && downbeat trace correct wrong.dbt -o right.dbt && downbeat \
                  trace convert right.dbt right.pftrace"
)]
pub(crate) struct Options {
    /// The trace, which stays as it is
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write it; what is there is replaced when all is done
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Leave times of an OTF2 archive as they were recorded, and make sessions of its clock offsets
    #[arg(long)]
    as_recorded: bool,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options {
        input,
        output,
        as_recorded,
    } = options;
    let to = Target::of(output)?;
    let _unfinished = Unfinished::of(output)?;
    files::check_output("OUT", output, &[input])?;
    let (mut text, left_out) = match to {
        Target::Trace(format) => {
            let mut writer = TraceWriter::create(output, format).map_err(Failure::run)?;
            let (mut locations, mut events) = (0, 0);
            let left_out = for_each_item(input, !as_recorded, |item| {
                match item {
                    Item::Location { .. } | Item::Thread { .. } => locations += 1,
                    Item::Event { .. } => events += 1,
                    _ => {}
                }
                writer.write(item)
            })?;
            writer.finish().map_err(Failure::run)?;
            (contents(output, locations, events), left_out)
        }
        Target::Perfetto => {
            let mut survey = PerfettoSurvey::default();
            for_each_item(input, !as_recorded, |item| {
                survey.take(item);
                Ok(())
            })?;
            let mut writer =
                PerfettoWriter::create(output, &survey).map_err(|why| unwritable(input, why))?;
            let left_out = for_each_item(input, !as_recorded, |item| writer.write(item))?;
            (
                said(output, &writer.finish().map_err(Failure::run)?),
                left_out,
            )
        }
    };
    if left_out > 0 {
        text += &format!(
            "Left out, of kinds that no trace has: {}\n",
            count(left_out as usize, "event")
        );
    }
    print(&text)
}

/// What is written.
#[derive(Clone, Copy, Debug)]
enum Target {
    Trace(TraceFormat),
    Perfetto,
}

impl Target {
    fn of(output: &Path) -> Result<Self, Failure> {
        if let Some(format) = TraceFormat::from_path(output) {
            return Ok(Self::Trace(format));
        }
        match output.extension().and_then(|end| end.to_str()) {
            Some("pftrace" | "perfetto-trace") => Ok(Self::Perfetto),
            _ => {
                let why = "the name ends in none of .dbt, .dbtb, .pftrace and .perfetto-trace";
                Err(Failure::option(
                    "OUT",
                    format!("{}: {why}", output.display()),
                ))
            }
        }
    }
}

fn contents(output: &Path, locations: u64, events: u64) -> String {
    let (locations, events) = (
        count(locations as usize, "location"),
        count(events as usize, "event"),
    );
    format!("{}: {locations}, {events}\n", output.display())
}

fn said(output: &Path, summary: &PerfettoSummary) -> String {
    let mut text = contents(output, summary.locations, summary.events);
    let shift = summary.shift.as_nanos();
    if shift > 0 {
        text += &format!(
            "All times are {shift} ns later than in the trace, so that none is negative\n"
        );
    }
    let counts = [
        (
            summary.unmatched,
            "Sends and receives without another end, which have no arrow",
        ),
        (
            summary.not_begun,
            "Ends of what has not begun, which are instants",
        ),
        (
            summary.cut_short,
            "Beginnings that end with what is around them",
        ),
        (summary.not_ended, "Beginnings that never end"),
        (
            summary.too_deep,
            "Beginnings that are nested too deeply to be shown",
        ),
    ];
    for (number, what) in counts.into_iter().filter(|(number, _)| *number > 0) {
        text += &format!("{what}: {number}\n");
    }
    text
}
