//! All observations in order of measurement: shows drift within a launch and between launches.

use downbeat_records::stats::Sample;

use downbeat_common::page::axis::Axis;
use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::page::svg::{Picture, TextAnchor, number};
use downbeat_common::units::{self, joined};

/// Ranges of the observations in one column of the plot: extremes are kept for any number of observations.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OrderColumn {
    /// Minimum and maximum of the observations up to the limit.
    usual: Option<(f64, f64)>,
    /// Minimum and maximum of the observations above the limit.
    above: Option<(f64, f64)>,
}

/// Minimum number of observations of a median.
const BLOCK: usize = 12;
/// Maximum number of medians of a launch.
const MOST_BLOCKS: usize = 24;

/// Range of the vertical axis: equal for all experiments, so that their plots can be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderSpan {
    pub(crate) least: f64,
    /// Largest observation that is not an outlier.
    pub(crate) usual: f64,
    pub(crate) greatest: f64,
}

/// Draws the launches of one experiment; `None` if there are no values.
pub(crate) fn picture(
    title: String,
    series: usize,
    launches: &[&[f64]],
    span: OrderSpan,
) -> Option<Picture> {
    let count: usize = launches.iter().map(|launch| launch.len()).sum();
    if count == 0 {
        return None;
    }
    let x = Axis::exact(
        &format!(
            "launch ({} in all, in their order)",
            units::counted(count, "observation", "observations")
        ),
        0.0,
        count as f64,
        Vec::new(),
    );
    let mut frame = Frame::new(
        x,
        Axis::split_times("run-time", span.least, span.usual, span.greatest),
        &[],
        210.0,
    );
    draw_columns(&mut frame, series, launches);
    if let Some(limit) = frame.y.split() {
        let y = frame.at_y(limit) - 0.03 * (frame.bottom() - frame.top());
        frame.canvas.line(
            "border",
            (frame.at_x(0.0), y),
            (frame.at_x(count as f64), y),
        );
    }
    draw_medians(&mut frame, series, launches);
    label_launches(&mut frame, launches);
    Some(frame.finish(title, describe(launches)))
}

/// Distributes values over columns, from left to right.
fn columns(
    values: impl Iterator<Item = f64>,
    count: usize,
    columns: usize,
    limit: f64,
) -> Vec<OrderColumn> {
    let mut found = vec![
        OrderColumn {
            usual: None,
            above: None
        };
        columns.min(count)
    ];
    let wider = |range: Option<(f64, f64)>, value: f64| {
        range.map_or((value, value), |(low, high)| {
            (low.min(value), high.max(value))
        })
    };
    let per_column = found.len() as f64 / count.max(1) as f64;
    for (place, value) in values.enumerate() {
        let Some(column) = found.get_mut((place as f64 * per_column) as usize) else {
            continue;
        };
        let range = if value > limit {
            &mut column.above
        } else {
            &mut column.usual
        };
        *range = Some(wider(*range, value));
    }
    found
}

fn draw_columns(frame: &mut Frame, series: usize, launches: &[&[f64]]) {
    let count: usize = launches.iter().map(|launch| launch.len()).sum();
    let width = frame.at_x(count as f64) - frame.at_x(0.0);
    let all = launches.iter().copied().flatten().copied();
    let found = columns(
        all,
        count,
        width as usize,
        frame.y.split().unwrap_or(f64::INFINITY),
    );
    let (mut usual, mut above, mut greatest) = (String::new(), String::new(), String::new());
    let wide = width / found.len().max(1) as f64;
    for (i, column) in found.iter().enumerate() {
        let x = frame.at_x(0.0) + (i as f64 + 0.5) * wide;
        if let Some((low, high)) = column.usual {
            usual += &stroke(x, frame.at_y(low) + 0.5, frame.at_y(high) - 0.5);
        }
        if let Some((low, high)) = column.above {
            // A full bar would suggest many observations, where there may be only two.
            let y = frame.at_y(high);
            above += &stroke(x, frame.at_y(low), y);
            greatest += &stroke(x, y + 1.2, y - 1.2);
        }
    }
    let colour = style::colour(series);
    frame.canvas.raw_path(&format!("band {colour}"), &usual);
    frame.canvas.raw_path(&format!("band {colour}"), &above);
    frame.canvas.raw_path(&format!("above {colour}"), &greatest);
}

fn stroke(x: f64, from: f64, to: f64) -> String {
    format!("M{} {}V{}", number(x), number(from), number(to))
}

/// Block of consecutive observations of a launch.
struct OrderBlock {
    /// Numbers of observations of all launches before its begin and its end.
    ends: [f64; 2],
    quartiles: [f64; 3],
    /// Mean without outliers.
    mean: f64,
    text: String,
}

/// Divides a launch into blocks; `before` observations are in the launches before it.
fn blocks(launch: &[f64], number: usize, before: usize) -> Vec<OrderBlock> {
    let blocks = (launch.len() / BLOCK).clamp(1, MOST_BLOCKS);
    let ends: Vec<usize> = (0..=blocks)
        .map(|block| block * launch.len() / blocks)
        .collect();
    let block = |ends: &[usize]| {
        let mut nanos = launch.get(ends[0]..ends[1])?.to_vec();
        let sample = Sample::new(&mut nanos).ok()?;
        let [first, last] = [ends[0] + 1, ends[1]].map(|number| units::count(number as u64));
        let quartiles = [0.25, 0.5, 0.75].map(|share| sample.quantile(share));
        let [lower, median, upper] = quartiles.map(units::time);
        let mean = sample.without_outliers(0.0).mean();
        let [low, high] = [0.0, 1.0].map(|share| units::time(sample.quantile(share)));
        Some(OrderBlock {
            ends: [ends[0], ends[1]].map(|end| (before + end) as f64),
            quartiles,
            mean,
            text: format!(
                "launch {number}, observations {first} to {last}: median {median}, quartiles {lower} and {upper}, \
                 mean {}, from {low} to {high}",
                units::time(mean)
            ),
        })
    };
    ends.windows(2).filter_map(block).collect()
}

/// Draws medians, means and quartiles of consecutive blocks of each launch, and describes them where a reader points at them.
fn draw_medians(frame: &mut Frame, series: usize, launches: &[&[f64]]) {
    let (mut before, mut described) = (0, vec![]);
    for (number, launch) in (1..).zip(launches) {
        let blocks = blocks(launch, number, before);
        let line = |value: fn(&OrderBlock) -> f64| -> Vec<_> {
            let place = |block: &OrderBlock| {
                let middle = 0.5 * (block.ends[0] + block.ends[1]);
                frame.at((middle, value(block)))
            };
            blocks.iter().map(place).collect()
        };
        let (first, medians) = (
            line(|block| block.quartiles[0]),
            line(|block| block.quartiles[1]),
        );
        let (third, means) = (line(|block| block.quartiles[2]), line(|block| block.mean));
        let outline: Vec<_> = first.into_iter().chain(third.into_iter().rev()).collect();
        frame
            .canvas
            .path(&format!("half {}", style::colour(series)), &outline);
        match medians[..] {
            [(x, y)] => frame.canvas.line("median", (x - 2.0, y), (x + 2.0, y)),
            _ => {
                frame.canvas.path("median", &medians);
                frame.canvas.path("median k2", &means);
            }
        }
        before += launch.len();
        described.extend(blocks);
    }
    for OrderBlock { ends, text, .. } in described {
        frame.name_part(&text, ends, frame.top());
    }
}

/// Draws the numbers of launches where they fit, and borders between launches.
fn label_launches(frame: &mut Frame, launches: &[&[f64]]) {
    let (mut before, mut free) = (0, f64::NEG_INFINITY);
    for (i, launch) in launches.iter().enumerate() {
        let name = (i + 1).to_string();
        let x = frame.at_x(before as f64 + 0.5 * launch.len() as f64);
        let half = 4.0 * name.len() as f64 + 3.0;
        if x - half >= free && !launch.is_empty() {
            free = x + half;
            let bottom = frame.bottom();
            frame
                .canvas
                .text("", (x, bottom + 17.0), TextAnchor::Middle, &name);
        }
        if i > 0 {
            frame.vertical("border", before as f64);
        }
        before += launch.len();
    }
}

fn describe(launches: &[&[f64]]) -> String {
    let describe_one = |(i, launch): (usize, &&[f64])| {
        let median = |part: &[f64]| {
            Sample::new(&mut part.to_vec())
                .map(|part| units::time(part.median()))
                .ok()
        };
        let halves = launch.split_at(launch.len() / 2);
        let (first, second) = (median(halves.0)?, median(halves.1)?);
        Some(format!(
            "Launch {}: median {first} in its first half, {second} in its second.",
            i + 1
        ))
    };
    joined(launches.iter().enumerate().filter_map(describe_one), " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_extreme_is_lost(values in prop::collection::vec(0.0..100.0, 1..300), wanted in 1_usize..50) {
            let found = columns(values.iter().copied(), values.len(), wanted, 90.0);
            prop_assert_eq!(found.len(), wanted.min(values.len()));
            let kept = |value: f64| found.iter().any(|column| {
                [column.usual, column.above].into_iter().flatten().any(|(low, high)| low == value || high == value)
            });
            prop_assert!(kept(values.iter().copied().fold(f64::MAX, f64::min)));
            prop_assert!(kept(values.iter().copied().fold(f64::MIN, f64::max)));
            // No column is empty, and values above the limit are in the right range.
            prop_assert!(found.iter().all(|column| column.usual.is_some() || column.above.is_some()));
            prop_assert!(found.iter().filter_map(|column| column.usual).all(|(_, high)| high <= 90.0));
            let above = values.iter().filter(|value| **value > 90.0).count();
            prop_assert_eq!(above > 0, found.iter().any(|column| column.above.is_some()));
        }
    }

    #[test]
    fn one_outlier_in_a_million_is_drawn() {
        let mut launch: Vec<f64> = (0..1_000_000).map(|i| 400.0 + f64::from(i % 10)).collect();
        launch[777_777] = 1e6;
        let span = OrderSpan {
            least: 400.0,
            usual: 410.0,
            greatest: 1e6,
        };
        let drawn = picture("order".into(), 0, &[&launch, &launch[..10]], span)
            .unwrap()
            .inline(1);
        assert_eq!(drawn.matches("class=\"median k2\"").count(), 1);
        assert!(drawn.contains(", mean 404.5 ns, from "));
        let above = drawn
            .split("class=\"above c0\" d=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert_eq!(above.matches('M').count(), 1, "{above}");
        assert!(drawn.len() < 30_000, "{}", drawn.len());
        assert!(picture("none".into(), 0, &[&[], &[]], span).is_none());
    }
}
