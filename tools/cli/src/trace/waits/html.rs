//! Wait states on a page.

use downbeat_common::output::percent;
use downbeat_common::page::svg::fitting;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units::{count, counted, time};

use super::report::{CallLine, WaitReport, share};

/// Most rows of a table.
const ROWS: usize = 100;
/// Most width of a name.
const NAME: f64 = 400.0;

/// Adds the tables of time in MPI and of wait states.
pub(in crate::trace) fn add_waits(page: &mut Page, report: &WaitReport) {
    page.section("calls", "Time in MPI");
    page.table(&calls("By call", "call", &report.calls));
    page.table(&calls("By location", "location", &report.in_mpi));
    if report.tracer_nanos > 0 {
        page.note(&format!(
            "Besides the program, the tracer took {}, for comparisons of the clocks. No share counts it.",
            time(report.tracer_nanos as f64)
        ));
    }
    page.section("waits", "Time lost by waiting");
    let (calls, lost) = report.total();
    if calls == 0 {
        page.note("No time was lost by waiting, as far as calls of MPI and collective operations are in the trace.");
        return;
    }
    page.note(&format!(
        "{} in {}: {} of the time of all locations. Late sender: a receive waits for its send. Late receiver: a send waits \
         until its receive is posted. Late root, early root: members wait for the root of a collective operation, or the root for \
         the first of its members. Wait at N x N, at barrier: members wait for the last one.",
        time(lost as f64),
        counted(calls as usize, "call", "calls"),
        percent(share(lost, report.time_nanos))
    ));
    page.table(&patterns(report));
    page.table(&locations(report));
    page.table(&regions(report));
}

fn calls(what: &str, heading: &str, lines: &[CallLine]) -> HtmlTable {
    let caption = caption(what, lines.len());
    let mut table = HtmlTable::of_numbers(&caption, [heading, "calls", "time", "share"]);
    for line in lines.iter().take(ROWS) {
        table.row([
            fitting(&line.name, NAME),
            count(line.calls),
            time(line.time_nanos as f64),
            percent(share(line.time_nanos, line.of_nanos)),
        ]);
    }
    table
}

fn patterns(report: &WaitReport) -> HtmlTable {
    let headings = ["pattern", "calls", "lost", "share", "longest"];
    let mut table = HtmlTable::of_numbers("By pattern", headings);
    for line in report.patterns.iter().filter(|line| line.calls > 0) {
        table.row([
            line.pattern.to_owned(),
            count(line.calls),
            time(line.lost_nanos as f64),
            percent(share(line.lost_nanos, report.time_nanos)),
            time(line.most_nanos as f64),
        ]);
    }
    table
}

fn locations(report: &WaitReport) -> HtmlTable {
    let caption = caption("By location", report.by_location.len());
    let headings = ["location", "calls", "lost", "share of its time", "mostly"];
    let mut table = HtmlTable::of_numbers(&caption, headings);
    for line in report.by_location.iter().take(ROWS) {
        let mostly = line.patterns.first().map_or("", |line| line.pattern);
        table.row([
            fitting(&line.name, NAME),
            count(line.calls),
            time(line.lost_nanos as f64),
            percent(share(line.lost_nanos, line.time_nanos)),
            mostly.to_owned(),
        ]);
    }
    table
}

fn regions(report: &WaitReport) -> HtmlTable {
    let caption = caption("By region", report.by_region.len());
    let headings = ["region", "pattern", "calls", "lost", "longest"];
    let mut table = HtmlTable::of_numbers(&caption, headings);
    for line in report.by_region.iter().take(ROWS) {
        table.row([
            fitting(&line.region, NAME),
            line.waits.pattern.to_owned(),
            count(line.waits.calls),
            time(line.waits.lost_nanos as f64),
            time(line.waits.most_nanos as f64),
        ]);
    }
    table
}

fn caption(what: &str, all: usize) -> String {
    match all > ROWS {
        true => format!("{what}, the first {ROWS} of {}", count(all as u64)),
        false => what.to_owned(),
    }
}
