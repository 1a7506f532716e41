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
use downbeat_trace::view::{ViewSelection, ViewTime};

use arguments::{BesideTrace, SelectedCall};
use panel::{Found, Panel, PanelSource};

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
    /// Trace: an OTF2 archive, named by its folder or anchor file, or text, *.dbt
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
    #[arg(long, value_name = "NAME:N", conflicts_with_all = ["from", "to"])]
    call: Option<SelectedCall>,
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
    let (panels, found) = read(options, &output)?;
    let drawn = timeline::picture(&panels, &options.picture_title(), options.own_axes);
    if let Some(svg) = &options.svg {
        write_text("--svg", svg, &drawn.0.file())?;
    }
    let page = page::page(&panels, drawn, &found)?;
    page.write(
        &format!("Trace {}", options.trace.display()),
        "-o",
        &output,
        None,
    )?;
    match output == Path::new("-") {
        true => Ok(()),
        false => print(&said(&output, &panels, &found)),
    }
}

/// Reads all traces, the main one first.
fn read(options: &TraceShowOptions, output: &Path) -> Result<(Vec<Panel>, Found), Failure> {
    let share = 1 + options.beside.len();
    let reading = PanelSource {
        verify: options.verify,
        output,
        share,
    };
    let label = options.label.clone();
    let label = label.unwrap_or_else(|| options.trace.display().to_string());
    let selection = options.selection();
    let (main, found) = reading.main(label, &options.trace, &selection)?;
    let same = match selection {
        ViewSelection::Between(ends) if ends != [None; 2] => {
            ViewSelection::Events(main.viewed.events.clone())
        }
        other => other,
    };
    let mut panels = vec![main];
    for beside in &options.beside {
        let panel = reading.beside(beside, &same, &panels[0])?;
        panels.push(panel);
    }
    Ok((panels, found))
}

/// Returns the line that is printed.
fn said(output: &Path, panels: &[Panel], found: &Found) -> String {
    let shown = &panels[0].viewed;
    let [low, high] = shown.interval;
    let bars = shown.rows.iter().map(|row| row.bars.len()).sum::<usize>();
    let what = match shown.is_detailed {
        true => count(bars, "bar"),
        false => count(bars, "bar") + " of many calls",
    };
    format!(
        "{}: {}; {what} in {}\n{}",
        output.display(),
        found.contents,
        time((high - low).as_nanos() as f64),
        found.left_out
    )
}

impl TraceShowOptions {
    fn output(&self) -> PathBuf {
        let page = || {
            let mut name = files::name_of(&self.trace);
            name.push(".html");
            PathBuf::from(name)
        };
        self.output.clone().unwrap_or_else(page)
    }

    fn selection(&self) -> ViewSelection {
        if let Some(SelectedCall { name, number }) = &self.call {
            return ViewSelection::Call {
                name: name.clone(),
                number: *number,
            };
        }
        ViewSelection::Between([self.from, self.to])
    }

    fn picture_title(&self) -> String {
        match &self.call {
            Some(SelectedCall { name, number }) => {
                format!("{name}, call {number} of every location")
            }
            None => "Calls and messages over time".to_owned(),
        }
    }
}
