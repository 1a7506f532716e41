//! Summary of all regions of a report: the longest, the most imbalanced, and a table with links.

use downbeat_regions::{EventReport, ProfileReport, RankThread, RegionReport, TextOptions};

use downbeat_common::page::bins::BinUnit;
use downbeat_common::page::svg::fitting;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units::{count, counted};

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
    let headings = [
        "region",
        "max total",
        "on rank",
        "min total",
        "avg total",
        "max / avg",
        "ranks",
        "events",
        "avg event",
    ];
    let mut table = HtmlTable::of_numbers(&counted(regions.len(), "region", "regions"), headings);
    for (place, region) in regions.iter().enumerate() {
        let name = fitting(&region.name, NAME);
        let cells = region
            .events
            .as_ref()
            .map_or_else(|| ["–"; 8].map(str::to_owned), |events| cells(events, unit));
        if place < options.most_details {
            table.linked_row(&region_id(number, place + 1), &name, cells);
        } else {
            table.row([name].into_iter().chain(cells));
        }
    }
    page.table(&table);
    page.note("Totals are per rank: maximum, minimum, and average over the ranks with events.");
    threads(page, &regions, unit);
    call_tree(page, report, unit);
}

/// Writes the times of threads, if a rank has several.
fn threads(page: &mut Page, regions: &[&RegionReport], unit: BinUnit) {
    let rows: Vec<_> = regions
        .iter()
        .filter_map(|region| {
            let events = region.events.as_ref()?;
            let (most, least) = (events.greatest_thread?, events.least_thread?);
            (events.threads > 1).then_some((region, events, most, least))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let headings = [
        "region",
        "max of a thread",
        "on rank, thread",
        "min of a thread",
        "on rank, thread",
        "avg of threads",
        "threads",
    ];
    let mut table = HtmlTable::of_numbers("Threads", headings);
    for (region, events, most, least) in rows {
        let place = |thread: RankThread| format!("{}, {}", thread.rank, thread.thread);
        table.row([
            fitting(&region.name, NAME),
            unit.time(most.total.into()),
            place(most),
            unit.time(least.total.into()),
            place(least),
            unit.time(events.average_of_threads()),
            count(events.all_threads),
        ]);
    }
    page.table(&table);
    page.note("The totals of a rank add up its threads.");
}

/// Writes the call tree, if there is one.
fn call_tree(page: &mut Page, report: &ProfileReport, unit: BinUnit) {
    let entries = report.call_tree();
    if entries.is_empty() {
        return;
    }
    let headings = [
        "region inside others",
        "max total",
        "max own",
        "on rank",
        "avg own",
        "ranks",
        "events",
    ];
    let mut table = HtmlTable::of_numbers("Call tree", headings);
    for entry in entries {
        let name = format!("{}{}", "\u{2003}".repeat(entry.depth), entry.name);
        let cells = entry.path.map_or_else(
            || ["–"; 6].map(str::to_owned),
            |path| {
                [
                    unit.time(path.greatest_total.into()),
                    unit.time(path.greatest_own.into()),
                    path.own_rank.to_string(),
                    unit.time(path.average_own()),
                    path.ranks.to_string(),
                    count(path.events),
                ]
            },
        );
        table.row([fitting(&name, NAME)].into_iter().chain(cells));
    }
    page.table(&table);
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

fn cells(events: &EventReport, unit: BinUnit) -> [String; 8] {
    let average = events.average_total();
    let ratio = events.greatest_total.total as f64 / average as f64;
    [
        unit.time(events.greatest_total.total.into()),
        events.greatest_total.rank.to_string(),
        unit.time(events.least_total.total.into()),
        unit.time(average),
        if ratio.is_finite() {
            format!("{ratio:.2}")
        } else {
            "–".to_owned()
        },
        count(events.ranks.len().into()),
        count(events.count),
        unit.time(events.average()),
    ]
}
