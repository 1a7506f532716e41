//! What two reports differ in, as one JSON document.

use std::path::Path;

use downbeat_clock_core::DecimalBin;
use downbeat_regions::{EventReport, HistogramShift, RankSet, RankTotal, RegionDiff, ReportDiff};
use serde::Serialize;

/// Everything, as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct RegionsDiffReport<'a> {
    schema: &'static str,
    version: u32,
    reports: [JsonReport<'a>; 2],
    tick_nanos: i64,
    /// Those that changed the most first, and those that did not change last.
    regions: Vec<JsonRegion<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonReport<'a> {
    file: &'a Path,
    ranks: u32,
}

#[derive(Debug, Serialize)]
struct JsonRegion<'a> {
    name: &'a str,
    /// Whether each report knows it.
    known: [bool; 2],
    unchanged: bool,
    /// What each report says of its events, if it has any there.
    events: [Option<JsonEvents>; 2],
    greatest_total_change_ticks: i128,
    average_total_change_ticks: i128,
    histogram: Option<JsonHistogram>,
    moves: Vec<JsonMove<'a>>,
    /// Of how many ranks it is not known whether they moved.
    untold: u32,
}

/// In ticks.
#[derive(Debug, Serialize)]
struct JsonEvents {
    count: u64,
    ranks: u32,
    average_event: f64,
    greatest_total: RankTotal,
    least_total: RankTotal,
    average_total: f64,
    total: u128,
}

#[derive(Debug, Serialize)]
struct JsonHistogram {
    /// Which share of the events would have to change their bin.
    moved_share: f64,
    /// The least number of ticks in the fullest bin of each.
    fullest: [u64; 2],
    /// By how many bins the fullest one moved.
    fullest_moved_bins: i32,
}

#[derive(Debug, Serialize)]
struct JsonMove<'a> {
    /// The least number of ticks in the fullest bin of their group; nothing if they did not run through the region.
    from: Option<u64>,
    to: Option<u64>,
    ranks: &'a RankSet,
}

pub(super) fn report<'a>(
    [first, second]: [&'a Path; 2],
    diff: &'a ReportDiff<'a>,
) -> RegionsDiffReport<'a> {
    RegionsDiffReport {
        schema: "downbeat.regions_diff",
        version: 1,
        reports: [
            JsonReport {
                file: first,
                ranks: diff.ranks[0],
            },
            JsonReport {
                file: second,
                ranks: diff.ranks[1],
            },
        ],
        tick_nanos: diff.tick.as_nanos(),
        regions: diff.regions.iter().map(region).collect(),
    }
}

fn region<'a>(region: &'a RegionDiff<'a>) -> JsonRegion<'a> {
    let histogram = |moved: HistogramShift| JsonHistogram {
        moved_share: moved.share,
        fullest: moved.fullest.map(DecimalBin::low),
        fullest_moved_bins: moved.bins(),
    };
    let low = |bin: Option<DecimalBin>| bin.map(DecimalBin::low);
    let moves = region.moves.iter();
    JsonRegion {
        name: region.name,
        known: region.found.map(|found| found.is_some()),
        unchanged: region.is_unchanged(),
        events: region.events().map(|found| found.map(events)),
        greatest_total_change_ticks: region.greatest_total_change(),
        average_total_change_ticks: region.average_total_change(),
        histogram: region.histogram.map(histogram),
        moves: moves
            .map(|moved| JsonMove {
                from: low(moved.from),
                to: low(moved.to),
                ranks: &moved.ranks,
            })
            .collect(),
        untold: region.undetermined,
    }
}

fn events(found: &EventReport) -> JsonEvents {
    JsonEvents {
        count: found.count,
        ranks: found.ranks.len(),
        average_event: found.total as f64 / found.count.max(1) as f64,
        greatest_total: found.greatest_total,
        least_total: found.least_total,
        average_total: found.total as f64 / f64::from(found.ranks.len().max(1)),
        total: found.total,
    }
}
