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
    let greatest = regions
        .first()
        .and_then(|first| first.events.as_ref())
        .map_or(0, |events| events.greatest_total.total);
    let digits = unit.digits_for(greatest.into());
    // At least as wide as the headings.
    let width = unit
        .seconds_to(greatest.into(), digits)
        .len()
        .max("max total".len());
    let dashes = "-".repeat(width + 1);
    let _ = writeln!(
        text,
        "{:>width$} | {:>width$} | {:>width$} | timer",
        "max total", "min total", "avg total"
    );
    let _ = writeln!(text, "{dashes}|-{dashes}|-{dashes}|------");
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
    text
}
