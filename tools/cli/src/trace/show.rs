//! `downbeat trace show`: a part of a trace as a picture on a page.

mod arguments;
mod calls;
mod colours;
mod data;
mod layout;
mod page;
mod panel;
mod timeline;

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::{count, print};
use downbeat_common::trace::files;
use downbeat_common::units::time;
use downbeat_common::{Failure, Outputs, write_text};
use downbeat_trace::calls::{CallFinding, CallTimes};
use downbeat_trace::view::{ViewSelection, ViewTime};
use downbeat_trace::waits::WaitStates;

use super::waits::WaitReport;
use arguments::BesideTrace;
use panel::{Panel, PanelSource};

#[derive(Args, Debug)]
#[command(
    after_help = "TIME is a timestamp of the trace, as 12.5s, or the time since its first event, as +12.5s.\n\n\
                  With --call, every row shows the same call, and the interval around it. With --beside, the same events are \
                  shown by the timestamps of other traces of the same run, one above the other on one axis that \
                  begins with each interval: by the clocks as recorded and by a global clock, for example.\n\n\
                  Examples:\n  downbeat trace generate -o raw.dbt && downbeat trace correct raw.dbt -o right.dbt && \\\n    \
                  downbeat trace show right.dbt -o page.html\n  \
                  downbeat trace generate -o raw.dbt && downbeat trace correct raw.dbt -o right.dbt && \\\n    \
                  downbeat trace show right.dbt -o page.html --call allreduce:3 \\\n    \
                  --label 'global clock' --beside 'local clocks=raw.dbt' --svg figure.svg"
)]
pub(crate) struct TraceShowOptions {
    /// Trace: an OTF2 archive, named by its folder or anchor file, text, *.dbt, or a .json or .json.gz file of Kineto or Chrome
    #[arg(value_name = "TRACE", value_parser = files::path_parser())]
    trace: PathBuf,
    /// File for the page, or - for standard output [default: the name of the trace, in this folder, with .html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Begin of the interval to show
    #[arg(long, value_name = "TIME", value_parser = arguments::time, allow_hyphen_values = true)]
    from: Option<ViewTime>,
    /// End of the interval to show
    #[arg(long, value_name = "TIME", value_parser = arguments::time, allow_hyphen_values = true)]
    to: Option<ViewTime>,
    /// Show the N-th call of a region on every location, counted from 1: MPI_Allreduce:1234
    #[arg(long, value_name = "NAME:N", value_parser = arguments::call, conflicts_with_all = ["from", "to"])]
    call: Option<ViewSelection>,
    /// Another trace of the same run, to show the same events by its timestamps; may be repeated
    #[arg(long, value_name = "[LABEL=]TRACE")]
    beside: Vec<BesideTrace>,
    /// Label of the clock of the trace, if there are others beside it
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Give every trace its own time axis
    #[arg(long, requires = "beside")]
    own_axes: bool,
    /// Also write the picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    verify: VerifyOptions,
}

pub(crate) fn run(options: &TraceShowOptions) -> Result<(), Failure> {
    let output = options.output();
    let others = options.beside.iter().map(|beside| &*beside.path);
    let inputs = [&*options.trace].into_iter().chain(others);
    let mut outputs = Outputs::new(inputs.flat_map(files::all_of));
    outputs.text("-o", &output)?;
    if let Some(svg) = &options.svg {
        outputs.text("--svg", svg)?;
    }
    let (panels, waits) = read(options, &output)?;
    let drawn = timeline::picture(&panels, &options.picture_title(), options.own_axes);
    if let Some(svg) = &options.svg {
        write_text("--svg", svg, &drawn.0.file())?;
    }
    let page = page::page(&panels, drawn, &waits)?;
    let title = format!("Trace {}", options.trace.display());
    page.write(&title, "-o", &output, None)?;
    match output == Path::new("-") {
        true => Ok(()),
        false => print(&said(&output, &panels[0])),
    }
}

/// Reads all traces, the main one first, and its wait states.
fn read(options: &TraceShowOptions, output: &Path) -> Result<(Vec<Panel>, WaitReport), Failure> {
    let source = PanelSource {
        verify: options.verify,
        output,
        share: 1 + options.beside.len(),
    };
    let label = options.label.clone();
    let trace = BesideTrace {
        label: label.unwrap_or_else(|| options.trace.display().to_string()),
        path: options.trace.clone(),
    };
    let selection = options.selection();
    let (mut states, mut times) = (WaitStates::default(), CallTimes::default());
    let find = |found: &CallFinding<'_>| {
        states.add_finding(found);
        times.add_finding(found);
    };
    let main = source.read("TRACE", &trace, &selection, find, None)?;
    let waits = WaitReport::new(&states.finish(), &times, &main.walked);
    let same = match selection {
        ViewSelection::Between(ends) if ends != [None; 2] => {
            ViewSelection::Events(main.viewed.events.clone())
        }
        other => other,
    };
    let mut panels = vec![main];
    for beside in &options.beside {
        let main = Some(&panels[0].walked);
        panels.push(source.read("--beside", beside, &same, |_| (), main)?);
    }
    Ok((panels, waits))
}

/// Returns the line that is printed.
fn said(output: &Path, main: &Panel) -> String {
    let [low, high] = main.viewed.interval;
    let bars = main.viewed.rows.iter().map(|row| row.bars.len()).sum();
    let of = match main.viewed.is_detailed {
        true => "",
        false => " of many calls",
    };
    format!(
        "{}: {}; {}{of} in {}\n{}",
        output.display(),
        main.walked.contents(),
        count(bars, "bar"),
        time((high - low).as_nanos() as f64),
        main.walked.left_out()
    )
}

impl TraceShowOptions {
    fn output(&self) -> PathBuf {
        if let Some(output) = &self.output {
            return output.clone();
        }
        let mut name = files::name_of(&self.trace);
        name.push(".html");
        name.into()
    }

    fn selection(&self) -> ViewSelection {
        if let Some(call) = &self.call {
            return call.clone();
        }
        ViewSelection::Between([self.from, self.to])
    }

    fn picture_title(&self) -> String {
        match &self.call {
            Some(ViewSelection::Call { name, number }) => {
                format!("{name}, call {number} of every location")
            }
            _ => "Calls and messages over time".to_owned(),
        }
    }
}
