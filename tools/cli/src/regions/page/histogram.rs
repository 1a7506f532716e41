//! Histogram of a group of ranks: for each bin, the average, maximum and minimum number of events of a rank.

use downbeat_regions::{BinCounts, EventReport, HistogramGroup};

use super::strip;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::bins::{self, BinUnit};
use downbeat_common::page::frame::{Frame, data_width};
use downbeat_common::page::svg::Picture;
use downbeat_common::page::units::{count, counted};

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
        let average = counts.sum as f64 / f64::from(group.ranks.len().max(1));
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
    let describe_bin = |counts: &BinCounts| {
        let average = counts.sum as f64 / f64::from(group.ranks.len().max(1));
        let [most, least] = [counts.most.count, counts.least.count].map(count);
        format!(
            "{}: {average:.1} events of a rank on average, at least {least}, at most {most}.",
            unit.span(counts.bin)
        )
    };
    group
        .bins
        .iter()
        .map(describe_bin)
        .collect::<Vec<_>>()
        .join(" ")
}
