//! The histogram of a group of ranks: for each bin, how many events a rank has in it, on average, at most and at least.

use downbeat_clock_core::DecimalBin;
use downbeat_measure::regions::{BinCounts, EventReport, HistogramGroup};

use super::strip;
use crate::page::axis::Axis;
use crate::page::frame::{Frame, data_width};
use crate::page::svg::{Picture, fitting, text_width};
use crate::page::units::{count, of};
use crate::regions::unit::Unit;

/// The axes of all groups of a region, so that they can be compared.
#[derive(Debug)]
pub(super) struct Scale {
    x: Axis,
    y: Axis,
}

/// How high the bars can be.
const HEIGHT: f64 = 150.0;
/// With fewer bins than these, bars would be as wide as the picture.
const LEAST_BINS: usize = 9;

impl Scale {
    pub(super) fn of(events: &EventReport, unit: Unit) -> Self {
        let bins = || events.groups.iter().flat_map(|group| &group.bins);
        let first = bins().map(|counts| counts.bin.index()).min().unwrap_or(0);
        let last = bins().map(|counts| counts.bin.index()).max().unwrap_or(0);
        let more = LEAST_BINS.saturating_sub(last + 1 - first);
        let first = first.saturating_sub(more / 2);
        let last = (last + more - more / 2).min(DecimalBin::COUNT - 1);
        let most = bins().map(|counts| counts.most.count).max().unwrap_or(1);
        let y = Axis::counts("events of a rank", most as f64, HEIGHT);
        let width = data_width(y.widest_tick());
        Self { x: lengths(first, last, width, unit), y }
    }
}

/// An axis of bins: each is as wide as all others, and so is each power of ten.
fn lengths(first: usize, last: usize, width: f64, unit: Unit) -> Axis {
    let slot = width / (last + 1 - first) as f64;
    // The first digit of a bin is 1 at the beginning of its power of ten; there is none for 0.
    let digit = |bin: DecimalBin| bin.index().checked_sub(1).map_or(0, |index| index % 9 + 1);
    let with = |digits: &[usize]| -> Vec<(f64, String)> {
        let bins = (first..=last).filter_map(DecimalBin::from_index).filter(|bin| digits.contains(&digit(*bin)));
        bins.map(|bin| (bin.index() as f64, unit.begin(bin))).collect()
    };
    let fits = |ticks: &[(f64, String)]| {
        let half = |text: &str| 0.5 * text_width(text) + 3.0;
        let apart = |pair: &[(f64, String)]| (pair[1].0 - pair[0].0) * slot > half(&pair[0].1) + half(&pair[1].1);
        ticks.len() > 1 && ticks.windows(2).all(apart)
    };
    let all: Vec<usize> = (0..10).collect();
    let choices = [&all[..], &[1, 3, 5, 7], &[1, 4, 7], &[1, 5], &[1]];
    let ticks = choices.into_iter().map(with).find(|ticks| fits(ticks)).unwrap_or_else(|| {
        // Powers of ten that are too near to each other, or a single one.
        let each = with(&[1]);
        let every = 1 + (each.len() as f64 * 80.0 / width) as usize;
        each.into_iter().step_by(every).collect()
    });
    Axis::exact("length of an event", first as f64, last as f64 + 1.0, ticks)
}

pub(super) fn picture(name: &str, number: usize, group: &HistogramGroup, scale: &Scale, unit: Unit) -> Picture {
    let colour = strip::colour(number - 1);
    let mut frame = Frame::new(scale.x.clone(), scale.y.clone(), &[], HEIGHT);
    for counts in &group.bins {
        let left = counts.bin.index() as f64;
        let average = counts.sum as f64 / f64::from(group.ranks.len().max(1));
        let ((x, top), (end, bottom)) = (frame.at((left, average)), frame.at((left + 1.0, 0.0)));
        // The bin that makes the group stands out.
        let class = if counts.bin == group.fullest { "tint" } else { "area" };
        let gap = (0.08 * (end - x)).min(2.0);
        frame.canvas.rectangle(&format!("{class} {colour}"), (x + gap, top), (end - x - 2.0 * gap, bottom - top));
        let (middle, half) = (0.5 * (x + end), (0.22 * (end - x)).min(4.0));
        let [most, least] = [counts.most.count, counts.least.count].map(|count| frame.at_y(count as f64));
        frame.canvas.line("range", (middle, most), (middle, least));
        for y in [most, least] {
            frame.canvas.line("range", (middle - half, y), (middle + half, y));
        }
    }
    let ranks = of(group.ranks.len() as usize, "rank", "ranks");
    let title =
        format!("{}, group {number}: {ranks} with most events of {}", fitting(name, 250.0), unit.span(group.fullest));
    frame.finish(title, describe(group, unit))
}

fn describe(group: &HistogramGroup, unit: Unit) -> String {
    let of = |counts: &BinCounts| {
        let average = counts.sum as f64 / f64::from(group.ranks.len().max(1));
        let [most, least] = [counts.most.count, counts.least.count].map(count);
        format!(
            "{}: {average:.1} events of a rank on average, {least} at least, {most} at most.",
            unit.span(counts.bin)
        )
    };
    group.bins.iter().map(of).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_timers::Duration;

    fn ticks(first: u64, last: u64) -> Vec<String> {
        let [first, last] = [first, last].map(|length| DecimalBin::of(length).index());
        let axis = lengths(first, last, 430.0, Unit::of(Duration::from_nanos(1)));
        axis.ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_as_many_as_there_is_room_for() {
        assert_eq!(ticks(0, 7), ["0", "1 ns", "2 ns", "3 ns", "4 ns", "5 ns", "6 ns", "7 ns"]);
        assert_eq!(ticks(40, 900), ["50 ns", "70 ns", "100 ns", "300 ns", "500 ns", "700 ns"]);
        assert_eq!(ticks(600, 6_000_000), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        let all = ticks(0, u64::MAX);
        assert!((3..=7).contains(&all.len()) && all[0] == "1 ns", "{all:?}");
    }
}
