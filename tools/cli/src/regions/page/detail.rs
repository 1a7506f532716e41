//! One region: its ranks, the histograms of those that look alike, and its statistics.

use downbeat_regions::{
    EventReport, HistogramGroup, RankCount, RankEvent, RankSet, RankTotal, RegionReport, Remarks,
    TextOptions,
};

use super::{histogram, strip};
use downbeat_common::page::bins::BinUnit;
use downbeat_common::page::units::{count, counted};
use downbeat_common::page::{HtmlTable, Page};

/// So many groups have their histograms in sight; those of the others are folded.
const IN_SIGHT: usize = 6;
/// So many runs of ranks are in sight.
const RUNS: usize = 16;

pub(super) fn write(
    page: &mut Page,
    id: &str,
    region: &RegionReport,
    ranks: u32,
    unit: BinUnit,
    options: &TextOptions,
) {
    let Some(events) = &region.events else {
        page.note("No rank ran through it to its end.");
        return remarks(page, region);
    };
    remarks(page, region);
    pictures(page, id, &region.name, events, ranks, unit);
    page.table(&legend(events, ranks, unit));
    whole_lists(page, events, options);
    page.table(&statistics(events, unit));
    page.note(&counts(events));
    page.folded("Histograms as numbers", |page| {
        for (number, group) in (1..).zip(&events.groups) {
            page.table(&numbers(number, group, unit));
        }
    });
}

/// What went wrong, and what is not over.
fn remarks(page: &mut Page, region: &RegionReport) {
    let Some(first) = region
        .remarked
        .filter(|_| region.remarks != Remarks::default())
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
    let scale = histogram::HistogramScale::of(events, unit);
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
    let in_sight: Vec<_> = histograms.by_ref().take(IN_SIGHT).collect();
    page.pictures([strip].into_iter().chain(in_sight));
    let folded: Vec<_> = histograms.collect();
    if !folded.is_empty() {
        page.folded(
            &counted(folded.len(), "more group", "more groups"),
            |page| page.pictures(folded),
        );
    }
}

/// Which ranks are in which group, in short.
fn legend(events: &EventReport, ranks: u32, unit: BinUnit) -> HtmlTable {
    let mut table = HtmlTable::of_text("Groups", ["group", "most events of", "ranks", "which"]);
    for (place, group) in events.groups.iter().enumerate() {
        let cells = [
            unit.span(group.fullest),
            count(group.ranks.len().into()),
            listed(&group.ranks, RUNS),
        ];
        table.keyed_row(&strip::class(place), &(place + 1).to_string(), cells);
    }
    let without = ranks.saturating_sub(events.ranks.len());
    if without > 0 {
        let cells = [
            "–".to_owned(),
            count(without.into()),
            format!("all but {}", listed(&events.ranks, RUNS)),
        ];
        table.keyed_row("lack", "without it", cells);
    }
    table
}

/// The lists that are too long for the table: they would hide what is below them.
fn whole_lists(page: &mut Page, events: &EventReport, options: &TextOptions) {
    let groups = (1..)
        .zip(&events.groups)
        .map(|(number, group)| (format!("Group {number}"), &group.ranks));
    let long = |ranks: &RankSet| ranks.runs().len() > RUNS.min(options.most_runs);
    let all: Vec<_> = groups
        .chain([("All that ran through it".to_owned(), &events.ranks)])
        .filter(|(_, ranks)| long(ranks))
        .collect();
    if !all.is_empty() {
        page.folded("Longer lists of ranks", |page| {
            for (whose, ranks) in all {
                page.paragraph(
                    "",
                    &format!("{whose}: {}", listed(ranks, options.most_runs)),
                );
            }
        });
    }
}

fn listed(ranks: &RankSet, most: usize) -> String {
    let (runs, more) = ranks.shown(most);
    let runs = runs.collect::<Vec<_>>().join(", ");
    match more {
        0 => runs,
        more if runs.is_empty() => counted(more as usize, "rank", "ranks"),
        more => format!("{runs} and {} more", count(more.into())),
    }
}

/// The statistics of the paper, in its order.
fn statistics(found: &EventReport, unit: BinUnit) -> HtmlTable {
    let threads = found.threads > 1;
    let mut table = HtmlTable::of_numbers("Statistics", ["", "time", "rank", "which", "ticks"]);
    let mut row = |what: &str, ticks: u128, rank: String, which: String| {
        table.row([
            what.to_owned(),
            unit.time(ticks),
            rank,
            which,
            ticks.to_string(),
        ]);
    };
    let mut event = |what: &str, event: &RankEvent| {
        let thread = if threads {
            format!("thread {}, ", event.thread)
        } else {
            String::new()
        };
        let which = format!("{thread}event {}", count(event.number));
        row(what, event.length.into(), event.rank.to_string(), which);
    };
    event("longest event", &found.longest);
    if let Some(second) = &found.second_longest {
        event("max 2nd longest", second);
    }
    event("shortest event", &found.shortest);
    let of_events = |events: u64| counted(events as usize, "event", "events");
    let mut total = |what: &str, ticks: u128, total: &RankTotal| {
        row(what, ticks, total.rank.to_string(), of_events(total.events));
    };
    total(
        "longest avg event",
        found.longest_average.average().into(),
        &found.longest_average,
    );
    total(
        "shortest avg event",
        found.shortest_average.average().into(),
        &found.shortest_average,
    );
    total(
        "max total",
        found.greatest_total.total.into(),
        &found.greatest_total,
    );
    total(
        "min total",
        found.least_total.total.into(),
        &found.least_total,
    );
    let ranks = counted(found.ranks.len() as usize, "rank", "ranks");
    let mut all =
        |what: &str, ticks: u128, which: String| row(what, ticks, "all".to_owned(), which);
    all("avg event", found.average(), of_events(found.count));
    all("avg total", found.average_total(), ranks.clone());
    all("aggregate total", found.total, ranks);
    table
}

/// How many events, and in how many threads.
fn counts(found: &EventReport) -> String {
    let ranks = found.ranks.len();
    let average = found.count / u64::from(ranks.max(1));
    let of_rank = |RankCount {
                       count: number,
                       rank,
                   }: RankCount| format!("{} (rank {rank})", count(number));
    let threads = match found.threads {
        0 | 1 => String::new(),
        several => format!(" Up to {several} threads of a rank."),
    };
    format!(
        "Events per rank: {} max, {} min, {} avg, on {}.{threads} Averages are cut to whole ticks and whole events.",
        of_rank(found.most),
        of_rank(found.fewest),
        count(average),
        counted(ranks as usize, "rank", "ranks")
    )
}

/// The bins of a group, the longest first.
fn numbers(number: usize, group: &HistogramGroup, unit: BinUnit) -> HtmlTable {
    let caption = format!("Group {number}: events of a rank, by their length");
    let mut table = HtmlTable::of_numbers(
        &caption,
        ["length", "ticks", "max", "on rank", "min", "on rank", "avg"],
    );
    for counts in group.bins.iter().rev() {
        let average = counts.sum as f64 / f64::from(group.ranks.len().max(1));
        let cells = [
            unit.span(counts.bin),
            counts.bin.to_string(),
            count(counts.most.count),
            counts.most.rank.to_string(),
            count(counts.least.count),
            counts.least.rank.to_string(),
            format!("{average:.2}"),
        ];
        if counts.bin == group.fullest {
            table.marked_row(cells)
        } else {
            table.row(cells)
        }
    }
    table
}
