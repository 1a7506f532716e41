//! Times over message sizes, one line for each series, with intervals.

use super::axis::{Axis, range, size_place};
use super::frame::{Frame, data_width};
use super::interval::IntervalTime;
use super::style;
use super::svg::{Picture, text_width};
use crate::units::{self, joined};

/// Line of one series.
#[derive(Debug)]
pub struct SizeLine {
    /// Name of the series.
    pub name: String,
    /// Message sizes with their times, sorted by size.
    pub points: Vec<(u64, IntervalTime)>,
}

/// Horizontal distance between series, so that their intervals do not hide each other.
const DISTANCE: f64 = 5.0;

/// Draws the lines; `None` if there are no points.
pub fn picture(title: String, quantity: &str, lines: &[SizeLine]) -> Option<Picture> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let mut sizes: Vec<u64> = points().map(|(bytes, _)| *bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let [low, high] = range(points().flat_map(|(_, time)| time.values()))?;
    let x = Axis::sizes(&sizes, data_width(text_width("10000")));
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    let mut frame = Frame::new(x, Axis::times(quantity, low, high, 5), &names, 210.0);
    for (series, line) in lines.iter().enumerate() {
        let aside = DISTANCE * (series as f64 - 0.5 * (lines.len() - 1) as f64);
        draw(&mut frame, series, line, aside);
    }
    Some(frame.finish(title, joined(lines.iter().map(describe), " ")))
}

fn draw(frame: &mut Frame, series: usize, line: &SizeLine, aside: f64) {
    let place = |(bytes, time): &(u64, IntervalTime)| {
        let (x, y) = frame.at((size_place(*bytes), time.nanos));
        (x + aside, y)
    };
    let places: Vec<_> = line.points.iter().map(place).collect();
    frame.canvas.path(&style::line(series), &places);
    for (bytes, time) in &line.points {
        let text = format!("{}, {}: {}", line.name, units::bytes(*bytes), time.text());
        let point = time.point(series, size_place(*bytes), text);
        point.draw(frame, aside);
    }
}

fn describe(line: &SizeLine) -> String {
    let points = line.points.iter();
    let points = points
        .map(|(bytes, time)| format!("{} at {}", units::time(time.nanos), units::bytes(*bytes)));
    format!("{}: {}.", line.name, joined(points, ", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_records::stats::Interval;

    fn line(name: &str, points: &[(u64, f64)]) -> SizeLine {
        let point = |(bytes, nanos): &(u64, f64)| {
            let interval = Some(Interval {
                low: nanos * 0.9,
                high: nanos * 1.1,
            });
            let time = IntervalTime {
                nanos: *nanos,
                interval,
            };
            (*bytes, time)
        };
        SizeLine {
            name: name.to_owned(),
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn every_point_of_every_experiment_is_drawn_and_described() {
        let lines = [
            line("one", &[(8, 400.0), (1_024, 900.0)]),
            line("two", &[(8, 500.0), (65_536, 30_000.0)]),
        ];
        let picture = picture("medians".into(), "median run-time", &lines).unwrap();
        let drawn = picture.inline(1);
        // Each of the four points has a marker, and each experiment another one in the
        // legend.
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 3);
        assert_eq!(drawn.matches("class=\"m c1\"").count(), 3);
        assert!(drawn.contains(
            "one: 400.0 ns at 8 B, 900.0 ns at 1 KiB. two: 500.0 ns at 8 B, 30.00 us at 64 KiB."
        ));
        assert!(super::picture("none".into(), "median", &[line("one", &[])]).is_none());
    }
}
