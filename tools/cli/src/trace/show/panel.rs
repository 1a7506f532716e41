//! One trace in the picture: its rows, and the interval that is shown.

use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::Failure;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::nearest::nearest;
use downbeat_common::output::count;
use downbeat_trace::calls::{CallTimes, ProgramNames};
use downbeat_trace::view::{
    TraceView, ViewBar, ViewError, ViewLimits, ViewRow, ViewSelection, Viewed,
};
use downbeat_trace::waits::WaitStates;

use super::arguments::BesideTrace;
use crate::trace::waits::WaitReport;
use crate::trace::walk::{WalkedTrace, walk};

/// Most bars, rows and messages of a page.
const MOST: ViewLimits = ViewLimits {
    bars: 60_000,
    rows: 1_000,
    messages: 4_000,
};

/// A trace in the picture.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) label: String,
    pub(super) names: ProgramNames,
    pub(super) viewed: Viewed,
    /// True if a call was selected.
    pub(super) has_call: bool,
    /// Number of events of the whole trace.
    events: u64,
}

/// Findings about the whole trace.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) waits: WaitReport,
    /// Numbers of locations and events.
    pub(super) contents: String,
    /// Findings that are incomplete, in lines.
    pub(super) left_out: String,
}

impl Panel {
    /// Returns the share by which a bar of a row is coloured: if a call was selected, other calls are lighter.
    pub(super) fn percent(&self, row: &ViewRow, bar: &ViewBar) -> u8 {
        let call = self.viewed.calls.get(row.first as usize).copied().flatten();
        let is_call =
            |[enter, leave]: [Timestamp<Global>; 2]| bar.times[0] >= enter && bar.times[1] <= leave;
        let is_selected = !self.has_call || call.is_some_and(is_call);
        if is_selected {
            bar.percent
        } else {
            bar.percent.min(50)
        }
    }
}

/// Settings for reading panels.
#[derive(Clone, Copy, Debug)]
pub(super) struct PanelSource<'a> {
    pub(super) verify: VerifyOptions,
    pub(super) output: &'a Path,
    /// Number of panels that share a page.
    pub(super) share: usize,
}

impl PanelSource<'_> {
    /// Reads the trace with the selected interval, and its wait states.
    pub(super) fn main(
        self,
        label: String,
        path: &Path,
        selection: &ViewSelection,
    ) -> Result<(Panel, Found), Failure> {
        let mut view = TraceView::new(selection.clone(), self.limits());
        let (mut states, mut times) = (WaitStates::default(), CallTimes::default());
        let walked = walk(path, self.verify, self.output, |found| {
            view.take(found);
            states.take(found);
            times.take(found);
        })?;
        let failed = |why| failure("TRACE", path, selection, &walked.names, &why);
        let viewed = view.finish(&walked.names).map_err(failed)?;
        let found = Found {
            waits: WaitReport::new(&states.finish(), &times, &walked),
            contents: walked.contents(),
            left_out: walked.left_out(),
        };
        let panel = Panel {
            label,
            names: walked.names,
            viewed,
            has_call: matches!(selection, ViewSelection::Call { .. }),
            events: walked.left.events,
        };
        Ok((panel, found))
    }

    /// Reads another trace of the same program.
    pub(super) fn beside(
        self,
        beside: &BesideTrace,
        selection: &ViewSelection,
        main: &Panel,
    ) -> Result<Panel, Failure> {
        let (label, path) = (beside.label.clone(), &beside.path);
        let mut view = TraceView::new(selection.clone(), self.limits());
        let walked = walk(path, self.verify, self.output, |found| view.take(found))?;
        let WalkedTrace { names, left, .. } = walked;
        let [here, there] = [&names, &main.names].map(|names| names.locations().len());
        let contents = [
            ("location", here, there),
            ("event", left.events as usize, main.events as usize),
        ];
        if let Some((what, here, there)) = contents.into_iter().find(|(_, a, b)| a != b) {
            let why = format!(
                "{}: it has {}, and the first trace has {there}: it is of another run",
                path.display(),
                count(here, what)
            );
            return Err(Failure::option("--beside", why));
        }
        let failed = |why| failure("--beside", path, selection, &names, &why);
        let viewed = view.finish(&names).map_err(failed)?;
        Ok(Panel {
            label,
            names,
            viewed,
            has_call: main.has_call,
            events: left.events,
        })
    }

    fn limits(self) -> ViewLimits {
        ViewLimits {
            bars: MOST.bars / self.share,
            messages: MOST.messages / self.share,
            ..MOST
        }
    }
}

/// Returns the failure to show something of a trace.
fn failure(
    option: &str,
    path: &Path,
    selection: &ViewSelection,
    names: &ProgramNames,
    why: &ViewError,
) -> Failure {
    let path = path.display();
    let (name, number) = match selection {
        ViewSelection::Call { name, number } => (name.as_str(), *number),
        _ => ("", 0),
    };
    match why {
        ViewError::Empty => Failure::option(option, format!("{path}: the trace has no events")),
        ViewError::Reversed([from, to]) => {
            Failure::option("--to", format!("{to} is before --from, {from}"))
        }
        ViewError::Outside([first, last]) => Failure::option(
            "--from, --to",
            format!(
                "{path}: there are no events in the interval; the trace is from {first} to {last}"
            ),
        ),
        ViewError::UnknownRegion => {
            Failure::option("--call", format!("{path}: {}", unknown(name, names)))
        }
        ViewError::TooFewCalls(most) => {
            let calls = match most {
                0 => "no location calls it".to_owned(),
                1 => "no location calls it more than once".to_owned(),
                most => format!("no location calls it more than {most} times"),
            };
            Failure::option("--call", format!("{path}: {name}:{number}: {calls}"))
        }
    }
}

/// Tells the names that resemble one which is not known.
fn unknown(name: &str, names: &ProgramNames) -> String {
    let nearest = nearest(name, names.regions().map(|(_, name)| name), 3);
    let hint = match nearest.is_empty() {
        true => String::new(),
        false => format!("; there is {}", nearest.join(", ")),
    };
    format!("no region has the name {name:?}{hint}")
}
