//! Changed intervals: table 4 of Becker et al. (2009).

use crate::page::HtmlTable;
use crate::page::axis::Axis;
use crate::page::frame::Frame;
use crate::page::style;
use crate::page::svg::Picture;
use crate::trace::{AboveReport, DeviationReport, IntervalsReport, percent};
use crate::units::{count, time};

/// Height of lines.
const HEIGHT: f64 = 150.0;
/// Horizontal offset between series, so that they do not hide each other.
const APART: f64 = 7.0;

/// Label of a share, its intervals, and the share itself.
type ShareKind = (
    &'static str,
    fn(&DeviationReport) -> &IntervalsReport,
    fn(&AboveReport) -> f64,
);

const KINDS: [ShareKind; 4] = [
    (
        "positions: intervals",
        |found| &found.event_position,
        |above| above.share_of_intervals,
    ),
    (
        "positions: time",
        |found| &found.event_position,
        |above| above.share_of_time,
    ),
    (
        "distances: intervals",
        |found| &found.event_distance,
        |above| above.share_of_intervals,
    ),
    (
        "distances: time",
        |found| &found.event_distance,
        |above| above.share_of_time,
    ),
];

fn shares((_, intervals, share): &ShareKind, found: &DeviationReport) -> Vec<f64> {
    intervals(found).above.iter().map(share).collect()
}

/// Formats a threshold as briefly as possible.
fn threshold(share: f64) -> String {
    format!("{} %", 100.0 * share)
}

/// Draws the shares of intervals, and of their time, above each threshold; `None` if there are no
/// intervals.
pub(super) fn picture(found: &DeviationReport) -> Option<Picture> {
    if found.event_distance.intervals == 0 {
        return None;
    }
    let all = KINDS.map(|kind| shares(&kind, found));
    let least = all
        .iter()
        .flatten()
        .copied()
        .filter(|share| *share > 0.0)
        .fold(0.1, f64::min);
    // Powers of ten, with zero one step below the lowest.
    let lowest = least.log10().floor() as i32;
    let every = 1 + lowest.unsigned_abs() as usize / 6;
    let nothing = f64::from(lowest) - 0.6 * every as f64;
    let powers = (lowest..=0).rev().step_by(every);
    let ticks = powers
        .map(|power| (f64::from(power), percent(10_f64.powi(power))))
        .chain([(nothing, "0".to_owned())]);
    let y = Axis::exact(
        "share",
        nothing - 0.3 * every as f64,
        0.1 * every as f64,
        ticks.collect(),
    );
    let thresholds = found
        .event_distance
        .above
        .iter()
        .map(|above| threshold(above.threshold));
    let ticks: Vec<_> = (0..).map(f64::from).zip(thresholds).collect();
    let x = Axis::exact(
        "changed by more than",
        -0.5,
        ticks.len() as f64 - 0.5,
        ticks,
    );
    let names = KINDS.map(|(name, ..)| name.to_owned());
    let mut frame = Frame::new(x, y, &names, HEIGHT);
    for (series, shares) in all.iter().enumerate() {
        let aside = APART * (series as f64 - 1.5);
        let place = |(at, share): (usize, &f64)| {
            let (x, y) = frame.at((
                at as f64,
                if *share > 0.0 { share.log10() } else { nothing },
            ));
            (x + aside, y)
        };
        let places: Vec<_> = shares.iter().enumerate().map(place).collect();
        let there = shares.iter().take_while(|share| **share > 0.0).count();
        frame.canvas.path(&style::line(series), &places[..there]);
        for ((place, share), above) in places
            .into_iter()
            .zip(shares)
            .zip(&found.event_distance.above)
        {
            let more = threshold(above.threshold);
            let text = format!(
                "{}: {} changed by more than {more}",
                names[series],
                percent(*share)
            );
            frame
                .canvas
                .titled(&text, |canvas| canvas.marker(series, place));
        }
    }
    let said = |kind: &ShareKind| {
        let shares = shares(kind, found)
            .into_iter()
            .map(percent)
            .collect::<Vec<_>>()
            .join(", ");
        format!("{}: {shares}.", kind.0)
    };
    let description = KINDS.iter().map(said).collect::<Vec<_>>().join(" ");
    Some(frame.finish(
        "Intervals that are changed by more than a share of themselves".to_owned(),
        description,
    ))
}

/// Formats both parts of the paper's table.
pub(super) fn tables(found: &DeviationReport) -> [HtmlTable; 2] {
    let headings = [
        "",
        "intervals",
        "mean",
        "at most",
        "mean share",
        "at most, of itself",
    ];
    let mut changes = HtmlTable::of_numbers("Changed intervals", headings);
    for (name, intervals) in [
        ("event position", &found.event_position),
        ("event distance", &found.event_distance),
    ] {
        changes.row([
            name.to_owned(),
            count(intervals.intervals),
            time(intervals.mean_nanos),
            time(intervals.largest_nanos as f64),
            percent(intervals.mean_share),
            intervals
                .largest_share
                .map_or_else(|| "from 0".to_owned(), percent),
        ]);
    }
    let names = KINDS.map(|(name, ..)| name);
    let mut above = HtmlTable::of_numbers(
        "Share of",
        [
            "changed by more than",
            names[0],
            names[1],
            names[2],
            names[3],
        ],
    );
    let shares = KINDS.map(|kind| shares(&kind, found));
    for (row, above_threshold) in found.event_distance.above.iter().enumerate() {
        let cells = shares.iter().map(|shares| percent(shares[row]));
        above.row(
            [threshold(above_threshold.threshold)]
                .into_iter()
                .chain(cells),
        );
    }
    [changes, above]
}
