//! Histogram of a group of ranks: for each bin, the average, maximum and minimum number of events of a rank.

use downbeat_regions::{BinCounts, EventReport, HistogramGroup};

use super::strip;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::bins::{self, BinUnit};
use downbeat_common::page::frame::{Frame, data_width};
use downbeat_common::page::svg::Picture;
use downbeat_common::units::{count, counted, grouped};

/// Axes common to all groups of a region, so that they can be compared.
#[derive(Debug)]
pub(super) struct HistogramScale {
    x: Axis,
    y: Axis,
}

/// Height of the plot.
const HEIGHT: f64 = 150.0;

impl HistogramScale {
    pub(super) fn new(events: &EventReport, unit: BinUnit) -> Self {
        let bins = || events.groups.iter().flat_map(|group| &group.bins);
        let most = bins().map(|counts| counts.most.count).max().unwrap_or(1);
        let y = Axis::counts("events of a rank", most as f64, HEIGHT);
        let all = bins().map(|counts| counts.bin);
        Self {
            x: bins::axis("length of an event", all, data_width(y.widest_tick()), unit),
            y,
        }
    }
}

pub(super) fn picture(
    name: &str,
    number: usize,
    group: &HistogramGroup,
    scale: &HistogramScale,
    unit: BinUnit,
) -> Picture {
    let colour = strip::colour(number - 1);
    let mut frame = Frame::new(scale.x.clone(), scale.y.clone(), &[], HEIGHT);
    for counts in &group.bins {
        let average = average(counts, group);
        // The fullest bin, which defines the group, is darker.
        let class = if counts.bin == group.fullest {
            "tint"
        } else {
            "area"
        };
        let [x, end] = bins::draw(
            &mut frame,
            &format!("{class} {colour}"),
            counts.bin,
            average,
            &describe_bin(counts, average, unit),
        );
        let (middle, half) = (0.5 * (x + end), (0.22 * (end - x)).min(4.0));
        let [most, least] =
            [counts.most.count, counts.least.count].map(|count| frame.at_y(count as f64));
        frame.canvas.line("range", (middle, most), (middle, least));
        for y in [most, least] {
            frame
                .canvas
                .line("range", (middle - half, y), (middle + half, y));
        }
    }
    let ranks = counted(group.ranks.len() as usize, "rank", "ranks");
    let title = format!(
        "{name}, group {number}: {ranks} with most events of {}",
        unit.span(group.fullest)
    );
    frame.finish(title, describe(group, unit))
}

fn describe(group: &HistogramGroup, unit: BinUnit) -> String {
    let bins = group.bins.iter();
    let all = bins.map(|counts| describe_bin(counts, average(counts, group), unit) + ".");
    all.collect::<Vec<_>>().join(" ")
}

/// Returns the number of events in a bin of a rank of the group, on average.
fn average(counts: &BinCounts, group: &HistogramGroup) -> f64 {
    counts.sum as f64 / f64::from(group.ranks.len().max(1))
}

fn describe_bin(counts: &BinCounts, average: f64, unit: BinUnit) -> String {
    let [most, least] = [counts.most.count, counts.least.count].map(count);
    let average = grouped(&format!("{average:.1}"));
    format!(
        "{}: {average} events of a rank on average, at least {least}, at most {most}",
        unit.span(counts.bin)
    )
}
