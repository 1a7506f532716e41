//! One trace in the picture: its rows, and the interval that is shown.

use std::collections::BTreeMap;
use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::Failure;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::nearest;
use downbeat_common::output::count;
use downbeat_trace::calls::{CallFinding, ProgramNames};
use downbeat_trace::view::{
    TraceView, ViewBar, ViewContent, ViewError, ViewLimits, ViewRow, ViewSelection,
};

use super::arguments::BesideTrace;
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
    pub(super) walked: WalkedTrace,
    pub(super) viewed: ViewContent,
    /// True if a call was selected.
    has_call: bool,
}

impl Panel {
    /// Returns the numbers of the rows that show one location, by the locations.
    pub(super) fn row_numbers(&self) -> BTreeMap<u32, usize> {
        let rows = self.viewed.rows.iter().zip(0..);
        let single = rows.filter(|(row, _)| row.locations == 1);
        single.map(|(row, number)| (row.first, number)).collect()
    }

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
    /// Reads a trace, which `option` names, with the selected interval, and passes what
    /// is found in it to `find`, too. If there is a main trace, the trace must be of the
    /// same run.
    pub(super) fn read(
        self,
        option: &str,
        BesideTrace { label, path }: &BesideTrace,
        selection: &ViewSelection,
        mut find: impl FnMut(&CallFinding<'_>),
        main: Option<&WalkedTrace>,
    ) -> Result<Panel, Failure> {
        let limits = ViewLimits {
            bars: MOST.bars / self.share,
            messages: MOST.messages / self.share,
            ..MOST
        };
        let mut view = TraceView::new(selection.clone(), limits);
        let walked = walk(path, self.verify, self.output, |found| {
            view.add_finding(found);
            find(found);
        })?;
        if let Some(why) = main.and_then(|main| difference(&walked, main)) {
            let why = format!("{}: {why}: it is of another run", path.display());
            return Err(Failure::option(option, why));
        }
        let failed = |why| failure(option, path, selection, &walked.names, &why);
        let viewed = view.finish(&walked.names).map_err(failed)?;
        Ok(Panel {
            label: label.clone(),
            walked,
            viewed,
            has_call: matches!(selection, ViewSelection::Call { .. }),
        })
    }
}

/// Says how a trace differs from the main one of the same run, if it does.
fn difference(walked: &WalkedTrace, main: &WalkedTrace) -> Option<String> {
    let counts =
        |walked: &WalkedTrace| [walked.names.locations().len(), walked.left.events as usize];
    let (here, there) = (counts(walked), counts(main));
    let what = (0..2).find(|what| here[*what] != there[*what])?;
    Some(format!(
        "it has {}, and the first trace has {}",
        count(here[what], ["location", "event"][what]),
        there[what]
    ))
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
