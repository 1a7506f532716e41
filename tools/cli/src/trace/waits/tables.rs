//! Wait states as tables, in text of at most 80 columns and on a page.

use downbeat_common::output::{count, percent};
use downbeat_common::page::Page;
use downbeat_common::page::svg::fitting;
use downbeat_common::trace::short_name;
use downbeat_common::{Table, Text, units};

use super::report::{CallLine, WaitReport, share, time};

/// Form of tables.
struct TableSize {
    /// Most rows of a table.
    rows: usize,
    /// Shortens a name of the program.
    shorten: fn(&str) -> String,
    /// True if there is space for more columns than in text.
    is_wide: bool,
}

const PAGE: TableSize = TableSize {
    rows: 100,
    shorten: |name| fitting(name, 400.0),
    is_wide: true,
};

impl TableSize {
    /// Returns a caption that tells how many of all rows the table has.
    fn caption(&self, what: &str, all: usize) -> String {
        match all > self.rows {
            true => {
                let all = units::count(all as u64);
                format!("{what}, the first {} of {all}", self.rows)
            }
            false => what.to_owned(),
        }
    }

    fn calls(&self, heading: &str, lines: &[CallLine]) -> Table {
        Table::of(lines.iter().take(self.rows))
            .column(heading, |line| (self.shorten)(&line.name))
            .column("calls", |line| units::count(line.calls))
            .column("time", |line| time(line.time_nanos))
            .column("share", |line| {
                percent(share(line.time_nanos, line.of_nanos))
            })
            .table()
    }

    fn locations(&self, report: &WaitReport) -> Table {
        let share_of = match self.is_wide {
            true => "share of its time",
            false => "share",
        };
        Table::of(report.by_location.iter().take(self.rows))
            .column("location", |line| (self.shorten)(&line.name))
            .column("calls", |line| units::count(line.calls))
            .column("lost", |line| time(line.lost_nanos))
            .column(share_of, |line| {
                percent(share(line.lost_nanos, line.time_nanos))
            })
            .column("mostly", |line| {
                let most = line.patterns.first();
                most.map_or("", |most| most.pattern).to_owned()
            })
            .table()
    }

    fn regions(&self, report: &WaitReport) -> Table {
        let table = Table::of(report.by_region.iter().take(self.rows))
            .column("region", |line| (self.shorten)(&line.region))
            .column("calls", |line| units::count(line.waits.calls))
            .column("lost", |line| time(line.waits.lost_nanos))
            .column("pattern", |line| line.waits.pattern.to_owned());
        match self.is_wide {
            true => table
                .column("longest", |line| time(line.waits.most_nanos))
                .table(),
            false => table.table(),
        }
    }
}

fn patterns(report: &WaitReport) -> Table {
    Table::of(report.patterns.iter().filter(|line| line.calls > 0))
        .column("pattern", |line| line.pattern.to_owned())
        .column("calls", |line| units::count(line.calls))
        .column("lost", |line| time(line.lost_nanos))
        .column("share", |line| {
            percent(share(line.lost_nanos, report.time_nanos))
        })
        .column("longest", |line| time(line.most_nanos))
        .table()
}

/// Formats the time of the tracer, if it took any.
fn tracer_sentence(report: &WaitReport) -> Option<String> {
    (report.tracer_nanos > 0).then(|| {
        format!(
            "Besides the program, the tracer took {}, for comparisons of the clocks.",
            time(report.tracer_nanos)
        )
    })
}

/// Formats the time that all calls lost; `None` if there is none.
fn lost_sentence(report: &WaitReport) -> Option<String> {
    let (calls, lost) = report.total();
    (calls > 0).then(|| {
        format!(
            "Lost by waiting: {} in {}, {} of the time of all locations",
            time(lost),
            count(calls as usize, "call"),
            percent(share(lost, report.time_nanos))
        )
    })
}

/// Formats the report with at most this number of rows in a table.
pub(super) fn text(report: &WaitReport, rows: usize) -> Text {
    let size = TableSize {
        rows,
        shorten: |name| short_name(name, 24),
        is_wide: false,
    };
    let mut text = Text::default();
    let nanos = report.in_mpi.iter().map(|line| line.time_nanos).sum();
    if nanos > 0 {
        text += format!(
            "In MPI: {}, {} of the time of all locations\n\n",
            time(nanos),
            percent(share(nanos, report.time_nanos))
        );
        for (heading, lines) in [("call", &report.calls), ("location", &report.in_mpi)] {
            text += size.calls(heading, lines);
            text += "\n";
        }
    }
    if let Some(sentence) = tracer_sentence(report) {
        text += sentence + "\n\n";
    }
    let Some(sentence) = lost_sentence(report) else {
        text += format!("{NOTHING_LOST}\n");
        return text;
    };
    text += sentence + "\n\n";
    text += patterns(report);
    let caption = size.caption("By location", report.by_location.len());
    text += format!("\n{caption}:\n");
    text += size.locations(report);
    let caption = size.caption("By region", report.by_region.len());
    text += format!("\n{caption}:\n");
    text += size.regions(report);
    text
}

const NOTHING_LOST: &str = "No time was lost by waiting, as far as calls of MPI and collective \
                            operations are in the trace.";

/// Adds the tables of time in MPI and of wait states.
pub(in crate::trace) fn add_waits(page: &mut Page, report: &WaitReport) {
    let add = |page: &mut Page, what: &str, all: usize, table: &Table| {
        page.table(&PAGE.caption(what, all), table);
    };
    page.section("calls", "Time in MPI");
    for (what, heading, lines) in [
        ("By call", "call", &report.calls),
        ("By location", "location", &report.in_mpi),
    ] {
        add(page, what, lines.len(), &PAGE.calls(heading, lines));
    }
    if let Some(sentence) = tracer_sentence(report) {
        page.note(&(sentence + " No share counts it."));
    }
    page.section("waits", "Time lost by waiting");
    let Some(sentence) = lost_sentence(report) else {
        page.note(NOTHING_LOST);
        return;
    };
    page.note(&(sentence
        + ". Late sender: a receive waits for its send. Late receiver: a send waits \
           until its receive is posted. Late root, early root: members wait for the root of a collective operation, or the root for \
           the first of its members. Wait at N x N, at barrier: members wait for the last one."));
    add(page, "By pattern", 0, &patterns(report));
    let locations = report.by_location.len();
    add(page, "By location", locations, &PAGE.locations(report));
    let regions = report.by_region.len();
    add(page, "By region", regions, &PAGE.regions(report));
}
