//! Report of `downbeat regions diff` in JSON.

use std::path::Path;

use downbeat_clock_core::histogram::DecimalBin;
use downbeat_regions::{EventReport, HistogramShift, RankSet, RankTotal, RegionDiff, ReportDiff};
use serde::Serialize;

/// The whole document.
#[derive(Debug, Serialize)]
pub(super) struct RegionsDiffReport<'a> {
    schema: &'static str,
    version: u32,
    reports: [JsonReport<'a>; 2],
    tick_nanos: i64,
    /// Regions, those with the largest change first.
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
    /// For each report, true if it contains the region.
    known: [bool; 2],
    unchanged: bool,
    /// Statistics of the events in each report, if it has any.
    events: [Option<JsonEvents>; 2],
    greatest_total_change_ticks: i128,
    average_total_change_ticks: i128,
    histogram: Option<JsonHistogram>,
    moves: Vec<JsonMove<'a>>,
    /// Number of ranks whose moves are unknown.
    untold: u32,
}

/// Statistics of events; times in ticks.
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
    /// Share of the events that would have to change their bin.
    moved_share: f64,
    /// Lower limit of the fullest bin of each report, in ticks.
    fullest: [u64; 2],
    /// Number of bins by which the fullest bin moved.
    fullest_moved_bins: i32,
}

#[derive(Debug, Serialize)]
struct JsonMove<'a> {
    /// Lower limit of the fullest bin of the ranks' group, in ticks; `None` if they have no events.
    from: Option<u64>,
    to: Option<u64>,
    ranks: &'a RankSet,
}

pub(super) fn report<'a>(files: [&'a Path; 2], diff: &'a ReportDiff<'a>) -> RegionsDiffReport<'a> {
    RegionsDiffReport {
        schema: "downbeat.regions_diff",
        version: 1,
        reports: [0, 1].map(|report| JsonReport {
            file: files[report],
            ranks: diff.ranks[report],
        }),
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
