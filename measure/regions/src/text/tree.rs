//! Call tree as text.

use std::fmt::Write as _;

use super::number::TickFormat;
use super::summary::{column, heading};
use crate::paths::PathReport;
use crate::report::ProfileReport;

/// Writes the tree, if any region is inside another.
pub(super) fn write(report: &ProfileReport, unit: &TickFormat, text: &mut String) {
    let entries = report.call_tree();
    if entries.is_empty() {
        return;
    }
    let column = column(report, unit);
    let width = column.width;
    text.push_str("\n*** call tree; own time is not in regions inside\n");
    heading(["max total", "max own", "avg own"], "timer", &column, text);
    for entry in entries {
        let shown = |time: fn(&PathReport) -> u128| {
            let time = entry.path.map(|path| column.time(unit, time(path)));
            time.unwrap_or("-".to_owned())
        };
        let _ = writeln!(
            text,
            "{:>width$} | {:>width$} | {:>width$} | {:indent$}{}",
            shown(|path| path.greatest_total.into()),
            shown(|path| path.greatest_own.into()),
            shown(PathReport::average_own),
            "",
            entry.name,
            indent = 2 * entry.depth
        );
    }
}
