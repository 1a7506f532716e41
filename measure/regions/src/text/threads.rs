//! Times of threads: those of a rank add up its threads, which hides their imbalance.

use std::fmt::Write as _;

use super::number::TickFormat;
use super::summary::{column, heading};
use crate::report::{ProfileReport, RankThread};

/// Writes the times of regions with several threads on a rank, if there are any.
pub(super) fn write(report: &ProfileReport, unit: &TickFormat, text: &mut String) {
    let regions: Vec<_> = report.regions();
    let mut threaded = regions.into_iter().filter_map(|region| {
        let events = region.events.as_ref()?;
        let extremes = [events.greatest_thread?, events.least_thread?];
        (events.threads > 1).then_some((region, events, extremes))
    });
    let Some(first) = threaded.next() else { return };
    let column = column(report, unit);
    let width = column.width;
    text.push_str("\n*** threads; those of a task are added up above\n");
    heading(
        ["max total", "min total", "avg total"],
        "timer, and threads with the extremes",
        &column,
        text,
    );
    for (region, events, [greatest, least]) in [first].into_iter().chain(threaded) {
        let times = [
            greatest.total.into(),
            least.total.into(),
            events.average_of_threads(),
        ];
        let [max, min, average] = times.map(|time| column.time(unit, time));
        let named = |thread: RankThread| match report.ranks {
            1 => format!("{}", thread.thread),
            _ => format!("{} of task {}", thread.thread, thread.rank),
        };
        let _ = writeln!(
            text,
            "{max:>width$} | {min:>width$} | {average:>width$} | {}, {} and {} of {}",
            region.name,
            named(greatest),
            named(least),
            events.all_threads
        );
    }
}
