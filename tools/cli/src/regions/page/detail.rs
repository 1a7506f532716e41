//! One region: its ranks, histograms of groups of similar ranks, and statistics.

use downbeat_regions::{
    EventReport, HistogramGroup, RankCount, RankEvent, RankSet, RegionReport, ReportRemarks,
    TextOptions,
};

use super::{histogram, strip};
use downbeat_common::page::Page;
use downbeat_common::page::bins::BinUnit;
use downbeat_common::page::rectangles::DASH;
use downbeat_common::units::{count, counted, grouped, joined};
use downbeat_common::{RowMark, Table};

/// Number of groups whose histograms are visible; others are folded.
const VISIBLE: usize = 6;
/// Maximum number of rank ranges in a table cell.
const RANGES: usize = 16;

pub(super) fn write(
    page: &mut Page,
    id: &str,
    region: &RegionReport,
    ranks: u32,
    unit: BinUnit,
    options: &TextOptions,
) {
    let Some(events) = &region.events else {
        page.note("No rank completed this region.");
        return remarks(page, region);
    };
    remarks(page, region);
    pictures(page, id, &region.name, events, ranks, unit);
    page.text_table("Groups", &legend(events, ranks, unit));
    whole_lists(page, events, options);
    page.table("Statistics", &statistics(events, unit));
    page.note(&counts(events));
    page.folded("Histograms as numbers", |page| {
        for (number, group) in (1..).zip(&events.groups) {
            let caption = format!("Group {number}: events of a rank, by their length");
            page.table(&caption, &numbers(group, unit));
        }
    });
}

/// Writes notes on errors, and on events that are still running.
fn remarks(page: &mut Page, region: &RegionReport) {
    let Some(first) = region
        .remarked
        .filter(|_| region.remarks != ReportRemarks::default())
    else {
        return;
    };
    let all = region
        .remarks
        .named()
        .into_iter()
        .filter(|(_, times)| *times > 0);
    let said: Vec<String> = all
        .map(|(what, times)| format!("{what} {}", counted(times as usize, "time", "times")))
        .collect();
    page.paragraph(
        "",
        &format!("Note: {}; first on rank {first}.", said.join(", ")),
    );
}

fn pictures(
    page: &mut Page,
    id: &str,
    name: &str,
    events: &EventReport,
    ranks: u32,
    unit: BinUnit,
) {
    let scale = histogram::HistogramScale::new(events, unit);
    let mut histograms = (1..).zip(&events.groups).map(|(number, group)| {
        (
            format!("{id}-histogram-{number}"),
            Some(histogram::picture(name, number, group, &scale, unit)),
        )
    });
    let strip = (
        format!("{id}-ranks"),
        strip::picture(name, events, ranks, unit),
    );
    let visible: Vec<_> = histograms.by_ref().take(VISIBLE).collect();
    page.pictures([strip].into_iter().chain(visible));
    let folded: Vec<_> = histograms.collect();
    if !folded.is_empty() {
        page.folded(
            &counted(folded.len(), "more group", "more groups"),
            |page| page.pictures(folded),
        );
    }
}

/// Makes the table of groups, with short lists of ranks.
fn legend(events: &EventReport, ranks: u32, unit: BinUnit) -> Table {
    let mut table = Table::new(["group", "most events of", "ranks", "which"]);
    for (place, group) in events.groups.iter().enumerate() {
        let cells = [
            (place + 1).to_string(),
            unit.span(group.fullest),
            count(group.ranks.len().into()),
            listed(&group.ranks, RANGES),
        ];
        table.marked_row(RowMark::Sample(strip::class(place)), cells);
    }
    let without = ranks.saturating_sub(events.ranks.len());
    if without > 0 {
        let cells = [
            "without it".to_owned(),
            "–".to_owned(),
            count(without.into()),
            format!("all but {}", listed(&events.ranks, RANGES)),
        ];
        table.marked_row(RowMark::Sample(DASH.to_owned()), cells);
    }
    table
}

/// Writes the lists of ranks that are too long for the table, folded.
fn whole_lists(page: &mut Page, events: &EventReport, options: &TextOptions) {
    let groups = (1..)
        .zip(&events.groups)
        .map(|(number, group)| (format!("Group {number}"), &group.ranks));
    let long = |ranks: &RankSet| ranks.runs().len() > RANGES.min(options.most_runs);
    let all: Vec<_> = groups
        .chain([("All ranks with events".to_owned(), &events.ranks)])
        .filter(|(_, ranks)| long(ranks))
        .collect();
    if !all.is_empty() {
        page.folded("Longer lists of ranks", |page| {
            for (name, ranks) in all {
                page.paragraph("", &format!("{name}: {}", listed(ranks, options.most_runs)));
            }
        });
    }
}

fn listed(ranks: &RankSet, most: usize) -> String {
    let (runs, more) = ranks.shown(most);
    let runs = joined(runs, ", ");
    match more {
        0 => runs,
        more if runs.is_empty() => counted(more as usize, "rank", "ranks"),
        more => format!("{runs} and {} more", count(more.into())),
    }
}

/// Makes the table of statistics, in the order of the paper.
fn statistics(found: &EventReport, unit: BinUnit) -> Table {
    let mut table = Table::new(["", "time", "rank", "which", "ticks"]);
    let mut row = |what: &str, ticks: u128, rank: String, which: String| {
        table.row([
            what.to_owned(),
            unit.time(ticks),
            rank,
            which,
            grouped(&ticks.to_string()),
        ]);
    };
    let mut event = |what: &str, event: &RankEvent| {
        let which = event_name(event, found.threads > 1);
        row(what, event.length.into(), event.rank.to_string(), which);
    };
    event("longest event", &found.longest);
    if let Some(second) = &found.second_longest {
        event("max 2nd longest", second);
    }
    event("shortest event", &found.shortest);
    let event_count = |events: u64| counted(events as usize, "event", "events");
    for (what, ticks, total) in [
        (
            "longest avg event",
            found.longest_average.average().into(),
            found.longest_average,
        ),
        (
            "shortest avg event",
            found.shortest_average.average().into(),
            found.shortest_average,
        ),
        (
            "max total",
            found.greatest_total.total.into(),
            found.greatest_total,
        ),
        (
            "min total",
            found.least_total.total.into(),
            found.least_total,
        ),
    ] {
        row(
            what,
            ticks,
            total.rank.to_string(),
            event_count(total.events),
        );
    }
    let ranks = counted(found.ranks.len() as usize, "rank", "ranks");
    let mut all =
        |what: &str, ticks: u128, which: String| row(what, ticks, "all".to_owned(), which);
    all("avg event", found.average(), event_count(found.count));
    all("avg total", found.average_total(), ranks.clone());
    all("aggregate total", found.total, ranks);
    table
}

/// Names an event of a rank, with its thread if there are several.
fn event_name(event: &RankEvent, has_threads: bool) -> String {
    let number = count(event.number);
    match has_threads {
        true => format!("thread {}, event {number}", event.thread),
        false => format!("event {number}"),
    }
}

/// Describes the number of events and threads.
fn counts(found: &EventReport) -> String {
    let ranks = found.ranks.len();
    let average = found.count / u64::from(ranks.max(1));
    let count_of_rank =
        |RankCount {
             count: number,
             rank,
         }: RankCount| format!("{} (rank {rank})", count(number));
    let threads = match found.threads {
        0 | 1 => String::new(),
        several => format!(" Up to {several} threads of a rank."),
    };
    format!(
        "Events per rank: {} max, {} min, {} avg, on {}.{threads} Averages are rounded down to whole ticks and events.",
        count_of_rank(found.most),
        count_of_rank(found.fewest),
        count(average),
        counted(ranks as usize, "rank", "ranks")
    )
}

/// Makes the table of the bins of a group, longest events first.
fn numbers(group: &HistogramGroup, unit: BinUnit) -> Table {
    let ranks = f64::from(group.ranks.len().max(1));
    Table::of(group.bins.iter().rev())
        .column("length", |counts| unit.span(counts.bin))
        .column("ticks", |counts| counts.bin.to_string())
        .column("max", |counts| count(counts.most.count))
        .column("on rank", |counts| counts.most.rank.to_string())
        .column("min", |counts| count(counts.least.count))
        .column("on rank", |counts| counts.least.rank.to_string())
        .column("avg", |counts| format!("{:.2}", counts.sum as f64 / ranks))
        .mark(|counts| (counts.bin == group.fullest).then_some(RowMark::Highlight))
        .table()
}
