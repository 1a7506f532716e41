//! Details of a region: statistics, and histograms of groups of ranks.

use std::fmt::Write as _;

use super::number::TickFormat;
use super::options::TextOptions;
use crate::groups::{HistogramGroup, RankCount};
use crate::profile::Remarks;
use crate::ranks::RankSet;
use crate::report::{EventReport, RankEvent, RankTotal, RegionReport};

/// Maximum length of a line with a list of ranks.
const LINE: usize = 88;
/// Maximum number of threads that are listed.
const MOST_THREADS: usize = 32;

pub(super) fn write_region(
    region: &RegionReport,
    ranks: u32,
    unit: &TickFormat,
    options: &TextOptions,
    text: &mut String,
) {
    let _ = writeln!(text, "*** {}", region.name);
    if let Some(events) = &region.events {
        list("", &events.ranks, options, text);
        statistics(events, unit, text);
    } else {
        text.push_str("no events\n");
    }
    remarks(region, text);
    if let Some(events) = &region.events {
        for group in &events.groups {
            text.push('\n');
            histogram(group, ranks, options, text);
        }
    }
}

/// Writes `tasks: 0,2-4` after `title`, with line breaks at commas.
fn list(title: &str, ranks: &RankSet, options: &TextOptions, text: &mut String) {
    let mut line = format!("{title}task{}: ", if ranks.len() == 1 { "" } else { "s" });
    let (runs, more) = ranks.shown(options.most_runs);
    let mut runs = runs.peekable();
    while let Some(mut run) = runs.next() {
        if runs.peek().is_some() {
            run.push(',');
        }
        if line.len() + run.len() > LINE {
            let _ = writeln!(text, "{line}");
            line.clear();
        }
        line += &run;
    }
    if more > 0 {
        let _ = write!(line, " and {more} more");
    }
    let _ = writeln!(text, "{line}");
}

fn statistics(found: &EventReport, unit: &TickFormat, text: &mut String) {
    let tasks = found.ranks.len();
    let average = found.count / u64::from(tasks.max(1));
    let EventReport { most, fewest, .. } = found;
    let plural = if tasks == 1 { "task" } else { "tasks" };
    let _ = writeln!(
        text,
        "events per task: {} max, {} min, {average} avg ({tasks} {plural})",
        most.count, fewest.count
    );
    if found.threads > 1 {
        let _ = writeln!(text, "threads per task: {} max", found.threads);
    }
    let mut line = |label: &str, ticks: u128, rest: String| {
        let _ = writeln!(
            text,
            "  {:<20} {}{rest}",
            format!("{label}:"),
            unit.time(ticks)
        );
    };
    let event_source = |event: &RankEvent| {
        let thread = if found.threads > 1 {
            format!(", thread {}", event.thread)
        } else {
            String::new()
        };
        format!(", task {}{thread}, event {}", event.rank, event.number)
    };
    let total_source =
        |total: &RankTotal| format!(", task {}, {} event(s)", total.rank, total.events);
    line(
        "longest event",
        found.longest.length.into(),
        event_source(&found.longest),
    );
    if let Some(second) = &found.second_longest {
        line(
            "max 2nd longest",
            second.length.into(),
            event_source(second),
        );
    }
    line(
        "shortest event",
        found.shortest.length.into(),
        event_source(&found.shortest),
    );
    line(
        "longest avg event",
        found.longest_average.average().into(),
        total_source(&found.longest_average),
    );
    line(
        "shortest avg event",
        found.shortest_average.average().into(),
        total_source(&found.shortest_average),
    );
    line(
        "avg event",
        found.average(),
        format!(", {} event(s)", found.count),
    );
    line(
        "max total",
        found.greatest_total.total.into(),
        total_source(&found.greatest_total),
    );
    line(
        "min total",
        found.least_total.total.into(),
        total_source(&found.least_total),
    );
    line(
        "avg total",
        found.average_total(),
        format!(", {tasks} {plural}"),
    );
    line("aggregate total", found.total, String::new());
    for thread in found.by_thread.iter().take(MOST_THREADS) {
        line(
            &format!("total of thread {}", thread.thread),
            thread.total.into(),
            format!(", {} event(s)", thread.events),
        );
    }
    let left_out = found.by_thread.len().saturating_sub(MOST_THREADS);
    if left_out > 0 {
        let _ = writeln!(text, "  ({left_out} more threads)");
    }
}

/// Writes remarks, if there are any.
fn remarks(region: &RegionReport, text: &mut String) {
    let Some(first) = region
        .remarked
        .filter(|_| region.remarks != Remarks::default())
    else {
        return;
    };
    let said: Vec<String> = region
        .remarks
        .named()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what} {count} time(s)"))
        .collect();
    let _ = writeln!(text, "  note: {}; first on task {first}", said.join(", "));
}

/// Writes a line for every bin that is not empty, the longest first, with numbers of
/// events. They and tasks are as wide as the widest.
fn histogram(group: &HistogramGroup, ranks: u32, options: &TextOptions, text: &mut String) {
    list("event histogram for ", &group.ranks, options, text);
    let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
    let task = digits(u64::from(ranks.saturating_sub(1)));
    let count = group
        .bins
        .iter()
        .map(|counts| digits(counts.most.count))
        .max()
        .unwrap_or(1);
    let count_text =
        |RankCount {
             count: number,
             rank,
         }: RankCount,
         name| format!("{number:count$} {name} (task {rank:task$})");
    for counts in group.bins.iter().rev() {
        let unit = if counts.bin.low() == counts.bin.high() {
            "tick(s)"
        } else {
            "ticks"
        };
        let average = counts.sum / u64::from(group.ranks.len().max(1));
        let (max, min) = (
            count_text(counts.most, "max"),
            count_text(counts.least, "min"),
        );
        let _ = writeln!(
            text,
            "{} {unit}: {max}, {min}, {average:count$} avg",
            counts.bin
        );
    }
}
