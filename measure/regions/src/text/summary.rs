//! Summary: one line for each region.

use std::fmt::Write as _;

use super::number::{TickFormat, nanos};
use crate::report::ProfileReport;

pub(super) fn summary(report: &ProfileReport, unit: &TickFormat) -> String {
    let mut text = format!(
        "*** profile for {} task{} ***\n",
        report.ranks,
        if report.ranks == 1 { "" } else { "s" }
    );
    let regions = report.regions();
    let (digits, width) = column(report, unit);
    heading(
        ["max total", "min total", "avg total"],
        "timer",
        width,
        &mut text,
    );
    for region in &regions {
        let columns = match &region.events {
            Some(events) => {
                let totals = [
                    events.greatest_total.total.into(),
                    events.least_total.total.into(),
                    events.average_total(),
                ];
                totals.map(|total| unit.seconds_to(total, digits))
            }
            None => ["-"; 3].map(str::to_owned),
        };
        let [max, min, average] = columns;
        let _ = writeln!(
            text,
            "{max:>width$} | {min:>width$} | {average:>width$} | {}",
            region.name
        );
    }
    text.push('\n');
    text += &foot(report);
    text
}

/// Number of decimal places of times, and width of a column: at least that of the headings.
pub(super) fn column(report: &ProfileReport, unit: &TickFormat) -> (usize, usize) {
    let totals = report.regions.iter().filter_map(|region| {
        let events = region.events.as_ref()?;
        Some(events.greatest_total.total)
    });
    let greatest = totals.max().unwrap_or(0);
    let digits = unit.digits_for(greatest.into());
    let width = unit.seconds_to(greatest.into(), digits).len();
    (digits, width.max("max total".len()))
}

/// Writes the first lines of a table.
pub(super) fn heading(columns: [&str; 3], last: &str, width: usize, text: &mut String) {
    let dashes = "-".repeat(width + 1);
    let [one, two, three] = columns;
    let _ = writeln!(
        text,
        "{one:>width$} | {two:>width$} | {three:>width$} | {last}"
    );
    let _ = writeln!(text, "{dashes}|-{dashes}|-{dashes}|------");
}

/// Units of the numbers, and the cost of the timers.
fn foot(report: &ProfileReport) -> String {
    let overhead = &report.overhead;
    let mut text = format!(
        "seconds; a tick is {}; clock: {}\n",
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
