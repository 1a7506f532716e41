//! Summary: one line for each region.

use std::fmt::Write as _;

use super::number::{ColumnFormat, TickFormat, nanos};
use crate::report::ProfileReport;

pub(super) fn summary(report: &ProfileReport, unit: &TickFormat) -> String {
    let mut text = format!(
        "*** profile for {} task{} ***\n",
        report.ranks,
        if report.ranks == 1 { "" } else { "s" }
    );
    let regions = report.regions();
    let column = column(report, unit);
    let event_counts = regions.iter().map(|region| match &region.events {
        Some(events) => events.most.count.to_string(),
        None => "-".to_owned(),
    });
    let event_counts: Vec<String> = event_counts.collect();
    let digits = event_counts.iter().map(String::len).max().unwrap_or(0);
    let events_width = digits.max("events".len());
    let last = format!("{:>events_width$} | timer", "events");
    heading(
        ["max total", "min total", "avg total"],
        &last,
        &column,
        &mut text,
    );
    let width = column.width;
    for (region, events) in regions.iter().zip(event_counts) {
        let columns = match &region.events {
            Some(events) => {
                let totals = [
                    events.greatest_total.total.into(),
                    events.least_total.total.into(),
                    events.average_total(),
                ];
                totals.map(|total| column.time(unit, total))
            }
            None => ["-"; 3].map(str::to_owned),
        };
        let [max, min, average] = columns;
        let _ = writeln!(
            text,
            "{max:>width$} | {min:>width$} | {average:>width$} | {events:>events_width$} | {}",
            region.name
        );
    }
    text.push('\n');
    text += &foot(report);
    text
}

/// Format of the columns of times, in which the greatest total of each region shows
/// something.
pub(super) fn column(report: &ProfileReport, unit: &TickFormat) -> ColumnFormat {
    let totals = report.regions.iter().filter_map(|region| {
        let events = region.events.as_ref()?;
        Some(events.greatest_total.total.into())
    });
    unit.column(totals, "max total, ms".len())
}

/// Writes the first lines of a table of three columns of times, and others.
pub(super) fn heading(columns: [&str; 3], others: &str, format: &ColumnFormat, text: &mut String) {
    let width = format.width;
    let dashes = "-".repeat(width + 1);
    let [one, two, three] = columns.map(|column| format!("{column}, {}", format.unit.name));
    let _ = writeln!(
        text,
        "{one:>width$} | {two:>width$} | {three:>width$} | {others}"
    );
    // The line fits into 60 columns.
    let others: String = others
        .chars()
        .take(others.len() - 2)
        .map(|c| if c == '|' { c } else { '-' })
        .collect();
    let _ = writeln!(text, "{dashes}|-{dashes}|-{dashes}|-{others}");
}

/// Units of the numbers, and the cost of the timers.
fn foot(report: &ProfileReport) -> String {
    let overhead = &report.overhead;
    let mut text = format!(
        "events: most of a task; a tick is {}; clock: {}\n",
        report.tick, report.clock
    );
    let subtracted = if overhead.subtracted {
        "subtracted"
    } else {
        "not subtracted"
    };
    let (within, whole) = (nanos(overhead.within_picos), nanos(overhead.whole_picos));
    let _ = writeln!(
        text,
        "own overhead: {within} in each event, {subtracted}; {whole} for who encloses it"
    );
    if let Some(warning) = &report.warning {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}
