//! `downbeat trace convert`: conversion of a trace to another format.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_clock_core::Duration;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::{count, print};
use downbeat_common::trace::{ItemSource, NewTrace, Unfinished, files, unwritable};
use downbeat_common::{Failure, Outputs};
use downbeat_trace::Event;
use downbeat_trace::formats::otf2::create;
use downbeat_trace::formats::perfetto::{PerfettoSummary, PerfettoSurvey, PerfettoWriter};
use downbeat_trace::formats::{Item, MergedItems, TraceWriter};

#[derive(Args, Debug)]
#[command(
    after_help = "The name of OUT selects the format: .dbt is text, .pftrace or .perfetto-trace that of Perfetto, to \
                  open in https://ui.perfetto.dev. .parquet is a table \
                  with one row per event for pandas, polars and DuckDB: location, name, rank, time in nanoseconds, kind, \
                  region, partner, tag, bytes, value of a metric. Any other name is that of a new folder for an OTF2 archive, \
                  OUT/traces.otf2.\n\n\
                  IN may also be an OTF2 archive, named by its folder or its anchor file NAME.otf2, or a .json or .json.gz file of Kineto (PyTorch), \
                  Chrome and others: each process, such as a device, is a location with a clock of its own, and flows between \
                  them are messages. Their events are put in the order of time, in temporary files next to OUT.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && \\\n    \
                  downbeat trace convert wrong.dbt wrong.pftrace\n  \
                  downbeat trace generate -o wrong.dbt && \\\n    \
                  downbeat trace correct wrong.dbt -o right.dbt && \\\n    \
                  downbeat trace convert right.dbt right.pftrace"
)]
pub(crate) struct TraceConvertOptions {
    /// Trace to convert; it is not modified
    #[arg(value_name = "IN", value_parser = files::path_parser())]
    input: PathBuf,
    /// Output file; an existing file is replaced when the conversion is complete. A new folder for an OTF2 archive
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Keep the timestamps of an OTF2 archive as recorded, and convert its clock offsets to sessions
    #[arg(long)]
    as_recorded: bool,
    #[command(flatten)]
    verify: VerifyOptions,
}

pub(crate) fn run(options: &TraceConvertOptions) -> Result<(), Failure> {
    let (input, output) = (&*options.input, &*options.output);
    let _unfinished = Unfinished::of(output)?;
    let mut outputs = Outputs::new(files::all_of(input));
    let viewer = ViewerFormat::of_output("OUT", output)?;
    match viewer {
        Some(_) => outputs.file("OUT", output)?,
        None => NewTrace::claim(&mut outputs, "OUT", output)?,
    }
    let checksums = options.verify.checksums();
    let mut source = ItemSource::open(input, !options.as_recorded, checksums, output)?;
    let left_out = std::mem::take(&mut source.left_out);
    let accepted = source.archive.accepted();
    source.archive.warn_of_damage();
    let mut text = match viewer {
        Some(ViewerFormat::Perfetto) => to_perfetto(&source, input, output)?,
        #[cfg(feature = "parquet")]
        Some(ViewerFormat::Parquet) => to_parquet(&source, output)?,
        None if NewTrace::is_text(output) => to_text(&source, output)?,
        None => to_archive(&source.merged(output)?, output)?,
    };
    if !left_out.is_empty() {
        let kinds = left_out.iter();
        let kinds = kinds.map(|(kind, number)| format!("{kind} ({number})"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        text += &format!("Left out, of unsupported kinds: {kinds}\n");
    }
    text += &accepted;
    print(&text)
}

fn to_text(source: &ItemSource, output: &Path) -> Result<String, Failure> {
    let mut writer = TraceWriter::create(output).map_err(Failure::run)?;
    let (mut locations, mut events, mut values) = (0, 0, 0);
    source.each(|item| {
        match item {
            Item::Location { .. } | Item::Thread { .. } => locations += 1,
            // Text has no metrics.
            Item::Metric { .. } => return Ok(()),
            Item::Event {
                event: Event::Metric { .. },
                ..
            } => {
                values += 1;
                return Ok(());
            }
            Item::Event { .. } => events += 1,
            _ => {}
        }
        writer.write(item)
    })?;
    writer.finish().map_err(Failure::run)?;
    let mut text = contents(output, locations, events);
    if values > 0 {
        text += &format!("Values of metrics left out: {values}\n");
    }
    Ok(text)
}

fn to_perfetto(source: &ItemSource, input: &Path, output: &Path) -> Result<String, Failure> {
    let mut survey = PerfettoSurvey::default();
    source.each(|item| {
        survey.add_item(item);
        Ok(())
    })?;
    let writer = PerfettoWriter::create(output, survey);
    let mut writer = writer.map_err(|why| unwritable(input, why))?;
    source.each(|item| writer.write(item))?;
    Ok(said(output, &writer.finish().map_err(Failure::run)?))
}

fn to_archive(items: &MergedItems, output: &Path) -> Result<String, Failure> {
    let found = create(items, output).map_err(files::archive_failure)?;
    let mut text = contents(&found.anchor, found.locations as u64, found.events);
    text += &shifted(found.shift);
    Ok(text)
}

/// Tells of a shift of all timestamps, if there was one.
fn shifted(shift: Duration) -> String {
    match shift.as_nanos() {
        0 => String::new(),
        shift => {
            format!("All timestamps were shifted by {shift} ns, so that none is negative\n")
        }
    }
}

#[cfg(feature = "parquet")]
fn to_parquet(source: &ItemSource, output: &Path) -> Result<String, Failure> {
    let writer = downbeat_trace::formats::parquet::ParquetWriter::create(output);
    let mut writer = writer.map_err(Failure::run)?;
    source.each(|item| writer.write(item))?;
    let [locations, events] = writer.finish().map_err(Failure::run)?;
    Ok(contents(output, locations, events))
}

/// Output format for programs that show traces or compute with them.
#[derive(Clone, Copy, Debug)]
enum ViewerFormat {
    Perfetto,
    #[cfg(feature = "parquet")]
    Parquet,
}

impl ViewerFormat {
    /// Returns the format that the name of an output selects; `None` if it is that of a
    /// trace.
    ///
    /// # Errors
    /// If the name has another format, or the program lacks it.
    fn of_output(option: &str, output: &Path) -> Result<Option<Self>, Failure> {
        let why = match output.extension().and_then(|end| end.to_str()) {
            Some("pftrace" | "perfetto-trace") => return Ok(Some(Self::Perfetto)),
            #[cfg(feature = "parquet")]
            Some("parquet") => return Ok(Some(Self::Parquet)),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => {
                "this program was built without Parquet; build it with --features parquet"
            }
            Some("json" | "gz" | "csv") => {
                "the name must end in .dbt, .pftrace, .perfetto-trace or .parquet, or be that of \
                 a new folder"
            }
            _ => return Ok(None),
        };
        let why = format!("{}: {why}", output.display());
        Err(Failure::option(option, why))
    }
}

/// Formats the numbers of locations and events of a trace that was written.
pub(super) fn contents(output: &Path, locations: u64, events: u64) -> String {
    let locations = count(locations as usize, "location");
    let events = count(events as usize, "event");
    format!("{}: {locations}, {events}\n", output.display())
}

fn said(output: &Path, summary: &PerfettoSummary) -> String {
    let mut text = contents(output, summary.locations, summary.events);
    text += &shifted(summary.shift);
    if summary.values > 0 {
        text += &format!("Values of metrics, shown as counters: {}\n", summary.values);
    }
    let counts = [
        (
            summary.unmatched,
            "Sends and receives without a counterpart, shown without arrow",
        ),
        (
            summary.not_begun,
            "Ends of intervals without a beginning, shown as instants",
        ),
        (
            summary.cut_short,
            "Intervals without an end, ended with the enclosing interval",
        ),
        (summary.not_ended, "Intervals that never end"),
        (summary.too_deep, "Intervals nested too deeply to be shown"),
    ];
    for (number, what) in counts.into_iter().filter(|(number, _)| *number > 0) {
        text += &format!("{what}: {number}\n");
    }
    text
}
