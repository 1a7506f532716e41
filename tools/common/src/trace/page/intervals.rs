//! Changed intervals: table 4 of Becker et al. (2009).

use downbeat_trace::deviation::{Deviation, IntervalChanges};

use crate::Table;
use crate::output::percent;
use crate::page::Page;
use crate::page::axis::Axis;
use crate::page::frame::Frame;
use crate::page::style;
use crate::page::svg::Picture;
use crate::units::{count, time};

/// Height of lines.
const HEIGHT: f64 = 150.0;
/// Horizontal offset between series, so that they do not hide each other.
const APART: f64 = 7.0;

/// Label of a share, and the share of intervals above each threshold.
type ShareSeries = (&'static str, [f64; 6]);

fn share_series(found: &Deviation) -> [ShareSeries; 4] {
    let [position, distance] = [&found.position, &found.distance].map(IntervalChanges::shares);
    [
        ("positions: intervals", position.map(|above| above.0)),
        ("positions: time", position.map(|above| above.1)),
        ("distances: intervals", distance.map(|above| above.0)),
        ("distances: time", distance.map(|above| above.1)),
    ]
}

/// Formats the thresholds as briefly as possible.
fn thresholds() -> [String; 6] {
    IntervalChanges::THRESHOLDS.map(|share| format!("{} %", 100.0 * share))
}

/// Returns an axis of powers of ten down to `least`, with zero one step below the lowest,
/// and the place of zero.
fn share_axis(least: f64) -> (Axis, f64) {
    let lowest = least.log10().floor() as i32;
    let every = 1 + lowest.unsigned_abs() as usize / 6;
    let nothing = f64::from(lowest) - 0.6 * every as f64;
    let powers = (lowest..=0).rev().step_by(every);
    let ticks = powers.map(|power| (f64::from(power), percent(10_f64.powi(power))));
    let ticks = ticks.chain([(nothing, "0".to_owned())]).collect();
    let (low, high) = (nothing - 0.3 * every as f64, 0.1 * every as f64);
    (Axis::exact("share", low, high, ticks), nothing)
}

/// Draws the shares of intervals, and of their time, above each threshold; `None` if there are no
/// intervals.
pub(super) fn picture(found: &Deviation) -> Option<Picture> {
    if found.distance.intervals == 0 {
        return None;
    }
    let all = share_series(found);
    let shares = all.iter().flat_map(|(_, shares)| shares);
    let shares = shares.filter(|share| **share > 0.0);
    let (y, nothing) = share_axis(shares.copied().fold(0.1, f64::min));
    let ticks: Vec<_> = (0..).map(f64::from).zip(thresholds()).collect();
    let end = ticks.len() as f64 - 0.5;
    let x = Axis::exact("changed by more than", -0.5, end, ticks);
    let names = all.map(|(name, _)| name.to_owned());
    let mut frame = Frame::new(x, y, &names, HEIGHT);
    let mut description = vec![];
    for (series, (name, shares)) in all.iter().enumerate() {
        let aside = APART * (series as f64 - 1.5);
        let place = |(at, share): (usize, &f64)| {
            let height = if *share > 0.0 { share.log10() } else { nothing };
            let (x, y) = frame.at((at as f64, height));
            (x + aside, y)
        };
        let places: Vec<_> = shares.iter().enumerate().map(place).collect();
        let there = shares.iter().take_while(|share| **share > 0.0).count();
        frame.canvas.path(&style::line(series), &places[..there]);
        let texts = shares.map(percent);
        for ((place, share), more) in places.into_iter().zip(&texts).zip(thresholds()) {
            let text = format!("{name}: {share} changed by more than {more}");
            frame
                .canvas
                .titled(&text, |canvas| canvas.marker(series, place));
        }
        description.push(format!("{name}: {}.", texts.join(", ")));
    }
    let title = "Intervals that are changed by more than a share of themselves";
    Some(frame.finish(title.to_owned(), description.join(" ")))
}

/// Adds both parts of the paper's table.
pub(super) fn add_tables(page: &mut Page, found: &Deviation) {
    let parts = [
        ("event position", &found.position),
        ("event distance", &found.distance),
    ];
    let changes = Table::of(parts)
        .column("", |(name, _)| (*name).to_owned())
        .column("intervals", |(_, found)| count(found.intervals))
        .column("mean", |(_, found)| time(found.mean()))
        .column(
            "at most",
            |(_, found)| time(found.largest.as_nanos() as f64),
        )
        .column("mean share", |(_, found)| percent(found.mean_share()))
        .column("at most, of itself", |(_, found)| {
            match found.largest_share.is_finite() {
                true => percent(found.largest_share),
                false => "from 0".to_owned(),
            }
        });
    page.table("Changed intervals", &changes.table());
    let mut above = Table::of(thresholds().into_iter().enumerate())
        .column("changed by more than", |(_, threshold)| threshold.clone());
    for (name, shares) in share_series(found) {
        above = above.column(name, |(row, _)| percent(shares[*row]));
    }
    page.table("Share of intervals and of their time", &above.table());
}
