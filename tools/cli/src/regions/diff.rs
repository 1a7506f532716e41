//! `downbeat regions diff`: changes of the regions of a program between two runs, and the ranks concerned.

mod document;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use downbeat_clock_core::histogram::DecimalBin;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::{count, percent, time};
use downbeat_common::units;
use downbeat_common::{Failure, PrintOptions, Table, Text};
use downbeat_regions::{EventReport, ProfileReport, RankSet, RegionDiff, ReportDiff};

use super::show::load;
use downbeat_common::page::bins::BinUnit;

#[derive(Args, Debug)]
#[command(
    after_help = "Regions are sorted by the change of the maximum total of a rank. The column \"moved\" is the share of events \
                  that would have to change their bin to turn one histogram into the other: 0 if both are equal, 100 % if \
                  they have no bin in common.\n\nExample:\n  downbeat regions diff before.json after.json"
)]
pub(crate) struct RegionsDiffOptions {
    /// Report of the first run
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Report of the second run
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Maximum number of regions, in the order of the table, to show in detail; 0 for the table only [default: all]
    #[arg(long, value_name = "NUMBER")]
    details: Option<usize>,
    /// Maximum number of rank ranges, such as 0-15 or 0-60:4, to list for each group of ranks; others are counted
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    runs: usize,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &RegionsDiffOptions) -> Result<(), Failure> {
    let reports = [&options.first, &options.second].map(|file| load(file, options.verify));
    let [first, second] = reports;
    let reports = [first?, second?];
    let [first, second] = &reports;
    let diff = ReportDiff::new(first, second).map_err(|why| {
        Failure::Input(format!(
            "{} and {}: {why}",
            options.first.display(),
            options.second.display()
        ))
    })?;
    let document = || document::report([&options.first, &options.second], &diff);
    let text = || render(options, &reports, &diff);
    options.print.print(document, text)
}

fn render(
    options: &RegionsDiffOptions,
    reports: &[ProfileReport; 2],
    diff: &ReportDiff<'_>,
) -> Text {
    let mut text = Text::default();
    for (letter, file, report) in [
        ("A", &options.first, &reports[0]),
        ("B", &options.second, &reports[1]),
    ] {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "{letter}: {}, {}",
            file.display(),
            count(report.ranks as usize, "rank")
        );
    }
    for remark in remarks(reports) {
        let _ = writeln!(text, "Note: {remark}");
    }
    text += "\n";
    let (same, changed): (Vec<_>, Vec<_>) = diff
        .regions
        .iter()
        .partition(|region| region.is_unchanged());
    if changed.is_empty() {
        text += "No region differs.\n";
        return text;
    }
    text += table(&changed, diff);
    if !same.is_empty() {
        let _ = writeln!(
            text,
            "({} without a difference)",
            count(same.len(), "region")
        );
    }
    for region in changed
        .into_iter()
        .take(options.details.unwrap_or(usize::MAX))
    {
        text += detail(region, diff, options);
    }
    text
}

/// Notes on differences between the runs as a whole.
fn remarks(reports: &[ProfileReport; 2]) -> Vec<String> {
    let mut remarks = vec![];
    let [first, second] = reports;
    if first.ranks != second.ranks {
        let both = first.ranks.min(second.ranks);
        let last = both.saturating_sub(1);
        remarks.push(format!(
            "the numbers of ranks differ: moves are only listed for the common ranks 0-{last}"
        ));
    }
    if first.clock != second.clock {
        remarks.push(format!(
            "A was timed by {}, B by {}",
            first.clock, second.clock
        ));
    }
    let subtracted = [first, second].map(|report| report.overhead.subtracted);
    if subtracted[0] != subtracted[1] {
        let letter = if subtracted[0] { "A" } else { "B" };
        remarks.push(format!(
            "the timing overhead is only subtracted in {letter}"
        ));
    }
    remarks
}

fn table(changed: &[&RegionDiff<'_>], diff: &ReportDiff<'_>) -> Table {
    type Ticks = fn(&EventReport) -> f64;
    let max: Ticks = |events| events.greatest_total.total as f64;
    let average: Ticks = |events| events.total as f64 / f64::from(events.ranks.len().max(1));
    let event: Ticks = |events| events.total as f64 / events.count.max(1) as f64;
    let nanos = |ticks: f64| ticks * diff.tick.as_nanos() as f64;
    let shown = |region: &RegionDiff<'_>, report: usize, ticks: Ticks| {
        let events = region.events()[report];
        events.map_or_else(none, |events| time(nanos(ticks(events))))
    };
    let change = |region: &RegionDiff<'_>, ticks: Ticks| match region
        .events()
        .map(|events| events.map(ticks))
    {
        [Some(first), Some(second)] if first > 0.0 => {
            signed(second - first, percent(second / first - 1.0))
        }
        _ => none(),
    };
    let events = |region: &RegionDiff<'_>, report: usize| {
        region.events()[report].map_or_else(none, |events| units::count(events.count))
    };
    Table::of(changed)
        .column("max total A", |region| shown(region, 0, max))
        .column("B", |region| shown(region, 1, max))
        .column("B - A", |region| {
            let grown = region.greatest_total_change() as f64;
            signed(grown, time(nanos(grown)))
        })
        .column("of A", |region| change(region, max))
        .column("avg total A", |region| shown(region, 0, average))
        .column("B", |region| shown(region, 1, average))
        .column("of A", |region| change(region, average))
        .column("events A", |region| events(region, 0))
        .column("B", |region| events(region, 1))
        .column("avg event A", |region| shown(region, 0, event))
        .column("B", |region| shown(region, 1, event))
        .column("of A", |region| change(region, event))
        .column("moved", |region| {
            let moved = region.histogram;
            moved.map_or_else(none, |moved| percent(moved.share))
        })
        .column("region", |region| region.name.to_owned())
        .table()
}

fn none() -> String {
    "-".to_owned()
}

/// Adds a sign to a positive change.
fn signed(change: f64, text: String) -> String {
    if change > 0.0 {
        format!("+{text}")
    } else {
        text
    }
}

/// Describes the changes of a region, and the ranks concerned.
fn detail(region: &RegionDiff<'_>, diff: &ReportDiff<'_>, options: &RegionsDiffOptions) -> String {
    let mut lines = vec![];
    match region.events() {
        [Some(first), Some(second)] => both(region, [first, second], diff, options, &mut lines),
        [Some(only), None] => lines.push(only_in(region, 1, &listed(&only.ranks, options))),
        [None, Some(only)] => lines.push(only_in(region, 0, &listed(&only.ranks, options))),
        [None, None] => {}
    }
    let remarks = region
        .found
        .map(|found| found.map(|found| found.remarks).unwrap_or_default());
    for ((what, before), (_, after)) in remarks[0].named().into_iter().zip(remarks[1].named()) {
        if before != after {
            lines.push(format!("{what}: {before} time(s) in A, {after} in B"));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("\n*** {}\n", region.name);
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Describes why a region has events in one report only.
fn only_in(region: &RegionDiff<'_>, other: usize, ranks: &str) -> String {
    let letter = ["B", "A"][other];
    match region.found[other] {
        Some(_) => format!("has events only in {letter}, on {ranks}"),
        None => format!("is only in {letter}, on {ranks}"),
    }
}

fn both(
    region: &RegionDiff<'_>,
    events: [&EventReport; 2],
    diff: &ReportDiff<'_>,
    options: &RegionsDiffOptions,
    lines: &mut Vec<String>,
) {
    let [first, second] = events.map(|found| found.greatest_total.rank);
    lines.push(if first == second {
        format!("max total: rank {first} in both")
    } else {
        format!("max total: rank {first} in A, rank {second} in B")
    });
    let ranks = events.map(|found| found.ranks.len());
    if ranks[0] != ranks[1] {
        lines.push(format!(
            "executed by {} in A, by {} in B",
            count(ranks[0] as usize, "rank"),
            ranks[1]
        ));
    }
    let unit = BinUnit::new(diff.tick);
    let named = |bin: DecimalBin| unit.plain_span(bin);
    if let Some(moved) = region.histogram {
        let [from, to] = moved.fullest.map(named);
        let fullest = match moved.bins() {
            0 => format!("the fullest bin is {from} in both"),
            bins => {
                let bins_moved = count(bins.unsigned_abs() as usize, "bin");
                let way = if bins > 0 { "up" } else { "down" };
                format!("the fullest bin moved from {from} to {to}, {bins_moved} {way}")
            }
        };
        lines.push(format!(
            "histogram: {} of the events would have to change their bin; {fullest}",
            percent(moved.share)
        ));
    }
    for moved in &region.moves {
        let group = |bin: Option<DecimalBin>| bin.map_or_else(|| "no events".to_owned(), named);
        let ranks = listed(&moved.ranks, options);
        lines.push(format!(
            "{} -> {}: {ranks}",
            group(moved.from),
            group(moved.to)
        ));
    }
    if region.undetermined > 0 {
        let ranks = count(region.undetermined as usize, "rank");
        lines.push(format!(
            "{ranks}: moves unknown, since the lists of ranks were truncated"
        ));
    }
}

/// Formats ranks: `3 ranks (0-1,7)`.
fn listed(ranks: &RankSet, options: &RegionsDiffOptions) -> String {
    let (runs, more) = ranks.shown(options.runs);
    let runs = units::joined(runs, ",");
    let number = count(ranks.len() as usize, "rank");
    match more {
        _ if runs.is_empty() => number,
        0 => format!("{number} ({runs})"),
        more => format!("{number} ({runs} and {more} more)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_regions::{Overhead, Profile, RegionProfile, ReportRemarks};
    use downbeat_timers::Duration;

    fn report(clock: &str, overhead: Overhead, running: u64) -> ProfileReport {
        let remarks = ReportRemarks {
            running,
            ..ReportRemarks::default()
        };
        let region = RegionProfile {
            remarks,
            ..RegionProfile::new("step")
        };
        ProfileReport::new(&Profile::new(
            clock,
            Duration::from_nanos(1),
            overhead,
            vec![region],
        ))
    }

    fn shown(reports: &[ProfileReport; 2]) -> String {
        let options = RegionsDiffOptions {
            first: "a.json".into(),
            second: "b.json".into(),
            details: None,
            runs: 16,
            verify: VerifyOptions::default(),
            print: PrintOptions::default(),
        };
        render(
            &options,
            reports,
            &ReportDiff::new(&reports[0], &reports[1]).unwrap(),
        )
        .to_string()
    }

    #[test]
    fn differences_between_the_runs_are_noted() {
        let one = report("TSC", Overhead::default(), 1);
        let text = shown(&[one.clone(), one.clone()]);
        assert_eq!(
            text,
            "A: a.json, 1 rank\nB: b.json, 1 rank\n\nNo region differs.\n"
        );
        let other = report(
            "CLOCK_MONOTONIC",
            Overhead {
                subtracted: true,
                ..Overhead::default()
            },
            2,
        );
        let text = shown(&[one.clone(), one.merge(other).unwrap()]);
        for line in [
            "Note: the numbers of ranks differ: moves are only listed for the common ranks 0-0\n",
            "Note: the timing overhead is only subtracted in B\n",
            "\n*** step\n  still running: 1 time(s) in A, 3 in B\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let other = report("CLOCK_MONOTONIC", Overhead::default(), 1);
        let text = shown(&[report("TSC", Overhead::default(), 1), other]);
        assert!(
            text.contains("Note: A was timed by TSC, B by CLOCK_MONOTONIC\n"),
            "{text}"
        );
    }
}
