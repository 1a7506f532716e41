//! Details of a region: statistics, and histograms of groups of ranks.

use std::fmt::Write as _;

use super::number::TickFormat;
use super::options::TextOptions;
use crate::groups::{HistogramGroup, RankCount};
use crate::profile::ReportRemarks;
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
    let line = |label: &str, ticks: u128, source: String| {
        let label = format!("{label}:");
        format!("  {label:<20} {}{source}\n", unit.time(ticks))
    };
    let event = |label, event: &RankEvent| {
        let thread = match found.threads {
            0 | 1 => String::new(),
            _ => format!(", thread {}", event.thread),
        };
        let source = format!(", task {}{thread}, event {}", event.rank, event.number);
        line(label, event.length.into(), source)
    };
    let total = |label, ticks: u64, total: &RankTotal| {
        let source = format!(", task {}, {} event(s)", total.rank, total.events);
        line(label, ticks.into(), source)
    };
    let average = |label, found: &RankTotal| total(label, found.average(), found);
    *text += &event("longest event", &found.longest);
    if let Some(second) = &found.second_longest {
        *text += &event("max 2nd longest", second);
    }
    *text += &event("shortest event", &found.shortest);
    *text += &average("longest avg event", &found.longest_average);
    *text += &average("shortest avg event", &found.shortest_average);
    let events = format!(", {} event(s)", found.count);
    *text += &line("avg event", found.average(), events);
    for (label, found) in [
        ("max total", &found.greatest_total),
        ("min total", &found.least_total),
    ] {
        *text += &total(label, found.total, found);
    }
    let tasks = format!(", {tasks} {plural}");
    *text += &line("avg total", found.average_total(), tasks);
    *text += &line("aggregate total", found.total, String::new());
    for thread in found.by_thread.iter().take(MOST_THREADS) {
        let label = format!("total of thread {}", thread.thread);
        let events = format!(", {} event(s)", thread.events);
        *text += &line(&label, thread.total.into(), events);
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
        .filter(|_| region.remarks != ReportRemarks::default())
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
