//! Wait states as tables of text, at most 80 columns wide.

use downbeat_common::output::{count, percent};
use downbeat_common::{Table, Text, units};

use super::report::{WaitReport, share, time};

/// Most letters of a name.
const NAME: usize = 24;

pub(super) fn text(report: &WaitReport, top: usize) -> Text {
    let mut text = in_mpi(report, top);
    if report.tracer_nanos > 0 {
        text += format!(
            "Besides the program, the tracer took {}, for comparisons of the clocks.\n\n",
            time(report.tracer_nanos)
        );
    }
    let (calls, lost) = report.total();
    if calls == 0 {
        text += "No time was lost by waiting.\n";
        return text;
    }
    text += format!(
        "Lost by waiting: {} in {}, {} of the time of all locations\n\n",
        time(lost),
        count(calls as usize, "call"),
        percent(share(lost, report.time_nanos))
    );
    text += patterns(report);
    text += format!("\nBy location{}\n", first_of(report.by_location.len(), top));
    text += locations(report, top);
    text += format!("\nBy region{}\n", first_of(report.by_region.len(), top));
    text += regions(report, top);
    text
}

/// Time in MPI by call and by location.
fn in_mpi(report: &WaitReport, top: usize) -> Text {
    let nanos = report.in_mpi.iter().map(|line| line.time_nanos).sum();
    if nanos == 0 {
        return Text::default();
    }
    let mut text = Text::from(format!(
        "In MPI: {}, {} of the time of all locations\n\n",
        time(nanos),
        percent(share(nanos, report.time_nanos))
    ));
    for (heading, lines) in [("call", &report.calls), ("location", &report.in_mpi)] {
        let mut table = Table::new([heading, "calls", "time", "share"]);
        for line in lines.iter().take(top) {
            table.row([
                cut(&line.name),
                units::count(line.calls),
                time(line.time_nanos),
                percent(share(line.time_nanos, line.of_nanos)),
            ]);
        }
        text += table;
        text += "\n";
    }
    text
}

fn first_of(all: usize, top: usize) -> String {
    match all > top {
        true => format!(", the first {top} of {}:", units::count(all as u64)),
        false => ":".to_owned(),
    }
}

fn patterns(report: &WaitReport) -> Table {
    let mut table = Table::new(["pattern", "calls", "lost", "share", "longest"]);
    for line in report.patterns.iter().filter(|line| line.calls > 0) {
        table.row([
            line.pattern.to_owned(),
            units::count(line.calls),
            time(line.lost_nanos),
            percent(share(line.lost_nanos, report.time_nanos)),
            time(line.most_nanos),
        ]);
    }
    table
}

fn locations(report: &WaitReport, top: usize) -> Table {
    let mut table = Table::new(["location", "calls", "lost", "share", "mostly"]);
    for line in report.by_location.iter().take(top) {
        let mostly = line.patterns.first().map_or("", |line| line.pattern);
        table.row([
            cut(&line.name),
            units::count(line.calls),
            time(line.lost_nanos),
            percent(share(line.lost_nanos, line.time_nanos)),
            mostly.to_owned(),
        ]);
    }
    table
}

fn regions(report: &WaitReport, top: usize) -> Table {
    let mut table = Table::new(["region", "calls", "lost", "pattern"]);
    for line in report.by_region.iter().take(top) {
        table.row([
            cut(&line.region),
            units::count(line.waits.calls),
            time(line.waits.lost_nanos),
            line.waits.pattern.to_owned(),
        ]);
    }
    table
}

/// Cuts a name of the program, in which there may be anything.
fn cut(name: &str) -> String {
    let mut letters = name
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let short: String = letters.by_ref().take(NAME).collect();
    match letters.next() {
        Some(_) => short.chars().take(NAME - 1).chain(['…']).collect(),
        None => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut() {
        assert_eq!(cut("MPI_Allreduce"), "MPI_Allreduce");
        assert_eq!(cut("a\u{1b}b"), "a\u{fffd}b");
        let long = cut(&"x".repeat(NAME + 1));
        assert_eq!(long, "x".repeat(NAME - 1) + "…");
    }
}
