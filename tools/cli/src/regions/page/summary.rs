//! Summary of all regions of a report: the longest, the most imbalanced, and a table with links.

use downbeat_regions::{EventReport, ProfileReport, RankThread, RegionReport, TextOptions};

use downbeat_common::page::Page;
use downbeat_common::page::bins::BinUnit;
use downbeat_common::page::svg::fitting;
use downbeat_common::units::{count, counted};
use downbeat_common::{RowMark, Table};

/// Maximum width of a name in the table; the heading of the region has the full name.
const NAME: f64 = 280.0;

pub(super) fn write(
    page: &mut Page,
    number: usize,
    report: &ProfileReport,
    unit: BinUnit,
    options: &TextOptions,
) {
    let regions = report.regions();
    for line in headlines(&regions, unit) {
        page.paragraph("lead", &line);
    }
    page.note(&conditions(report));
    if let Some(warning) = &report.warning {
        page.note(&format!("Warning: {warning}."));
    }
    let caption = counted(regions.len(), "region", "regions");
    page.table(&caption, &table(&regions, number, unit, options));
    page.note("Totals are per rank: maximum, minimum, and average over the ranks with events.");
    threads(page, &regions, unit);
    call_tree(page, report, unit);
}

/// Writes the times of threads, if a rank has several.
fn threads(page: &mut Page, regions: &[&RegionReport], unit: BinUnit) {
    let rows = regions.iter().filter_map(|region| {
        let events = region.events.as_ref().filter(|events| events.threads > 1)?;
        Some((
            region,
            events,
            events.greatest_thread?,
            events.least_thread?,
        ))
    });
    let place = |thread: &RankThread| format!("{}, {}", thread.rank, thread.thread);
    let table = Table::of(rows)
        .column("region", |(region, ..)| fitting(&region.name, NAME))
        .column("max of a thread", |(.., most, _)| {
            unit.time(most.total.into())
        })
        .column("on rank, thread", |(.., most, _)| place(most))
        .column("min of a thread", |(.., least)| {
            unit.time(least.total.into())
        })
        .column("on rank, thread", |(.., least)| place(least))
        .column("avg of threads", |(_, events, ..)| {
            unit.time(events.average_of_threads())
        })
        .column("threads", |(_, events, ..)| count(events.all_threads))
        .table();
    if table.is_empty() {
        return;
    }
    page.table("Threads", &table);
    page.note("The totals of a rank add up its threads.");
}

/// Writes the call tree, if there is one.
fn call_tree(page: &mut Page, report: &ProfileReport, unit: BinUnit) {
    let entries = report.call_tree();
    if entries.is_empty() {
        return;
    }
    let table = Table::of(entries)
        .column("region inside others", |entry| {
            let name = format!("{}{}", "\u{2003}".repeat(entry.depth), entry.name);
            fitting(&name, NAME)
        })
        .column("max total", |entry| {
            or_dash(entry.path, |path| unit.time(path.greatest_total.into()))
        })
        .column("max own", |entry| {
            or_dash(entry.path, |path| unit.time(path.greatest_own.into()))
        })
        .column("on rank", |entry| {
            or_dash(entry.path, |path| path.own_rank.to_string())
        })
        .column("avg own", |entry| {
            or_dash(entry.path, |path| unit.time(path.average_own()))
        })
        .column("ranks", |entry| {
            or_dash(entry.path, |path| path.ranks.to_string())
        })
        .column("events", |entry| {
            or_dash(entry.path, |path| count(path.events))
        });
    page.table("Call tree", &table.table());
    page.note("Own time is that which is not in regions inside.");
}

/// Name of the place of a region on the page.
pub(super) fn region_id(report: usize, place: usize) -> String {
    format!("region-{report}-{place}")
}

/// Explains the plots.
pub(super) fn explain(page: &mut Page) {
    page.note(
        "Ranks whose fullest bin is the same form a group; the first group has the longest events. In its histogram, a \
         bar is the average over the ranks of the group, the line on it extends from the minimum to the maximum of a rank, \
         and the fullest bin is darker. Every power of ten has nine bins, and heights are logarithmic, so that a single \
         event is visible next to a million.",
    );
}

/// Sentences on the longest and the most imbalanced region.
fn headlines(regions: &[&RegionReport], unit: BinUnit) -> Vec<String> {
    let mut lines = vec![];
    let with_events = || {
        regions
            .iter()
            .filter_map(|region| Some((&region.name, region.events.as_ref()?)))
    };
    if let Some((name, events)) = with_events().next() {
        let (total, rank) = (
            unit.time(events.greatest_total.total.into()),
            events.greatest_total.rank,
        );
        let average = unit.time(events.average_total());
        lines.push(format!(
            "{name} takes the longest: {total} on rank {rank}, and {average} on average."
        ));
    }
    let imbalance = |events: &EventReport| {
        u128::from(events.greatest_total.total).saturating_sub(events.average_total())
    };
    let worst = with_events()
        .max_by_key(|(_, events)| imbalance(events))
        .filter(|(_, events)| imbalance(events) > 0);
    if let Some((name, events)) = worst {
        let (more, rank) = (unit.time(imbalance(events)), events.greatest_total.rank);
        lines.push(format!(
            "The largest imbalance is in {name}: rank {rank} takes {more} more than the average."
        ));
    }
    if lines.is_empty() {
        lines.push("No region was completed.".to_owned());
    }
    lines
}

fn conditions(report: &ProfileReport) -> String {
    let overhead = &report.overhead;
    let nanos = |picos: u64| format!("{:.1} ns", picos as f64 / 1e3);
    let subtracted = if overhead.subtracted {
        "subtracted"
    } else {
        "not subtracted"
    };
    format!(
        "{}; a tick is {}; clock: {}; timing overhead: {} in each event, {subtracted}, and {} in an enclosing region.",
        counted(report.ranks as usize, "rank", "ranks"),
        report.tick,
        report.clock,
        nanos(overhead.within_picos),
        nanos(overhead.whole_picos)
    )
}

/// Formats a value, or a dash if there is none.
fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

/// Makes the table of all regions, in which those with details are links.
fn table(regions: &[&RegionReport], number: usize, unit: BinUnit, options: &TextOptions) -> Table {
    let total = |ticks: u64| unit.time(ticks.into());
    let events = |(_, region): &(usize, &&RegionReport), text: &dyn Fn(&EventReport) -> String| {
        or_dash(region.events.as_ref(), text)
    };
    let ratio = |events: &EventReport| {
        let ratio = events.greatest_total.total as f64 / events.average_total() as f64;
        or_dash(Some(ratio).filter(|ratio| ratio.is_finite()), |ratio| {
            format!("{ratio:.2}")
        })
    };
    Table::of((1..).zip(regions))
        .column("region", |(_, region)| fitting(&region.name, NAME))
        .column("max total", |row| {
            events(row, &|found| total(found.greatest_total.total))
        })
        .column("on rank", |row| {
            events(row, &|found| found.greatest_total.rank.to_string())
        })
        .column("min total", |row| {
            events(row, &|found| total(found.least_total.total))
        })
        .column("avg total", |row| {
            events(row, &|found| unit.time(found.average_total()))
        })
        .column("max / avg", |row| events(row, &ratio))
        .column("ranks", |row| {
            events(row, &|found| count(found.ranks.len().into()))
        })
        .column("events", |row| events(row, &|found| count(found.count)))
        .column("avg event", |row| {
            events(row, &|found| unit.time(found.average()))
        })
        .mark(|(place, _)| {
            let is_linked = *place <= options.most_details;
            is_linked.then(|| RowMark::Link(region_id(number, *place)))
        })
        .table()
}
