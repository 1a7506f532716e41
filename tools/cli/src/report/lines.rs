//! Averages over message sizes, one line for each experiment, with intervals.

use super::interval::IntervalTime;
use downbeat_common::page::axis::{Axis, size_place};
use downbeat_common::page::frame::{Frame, data_width};
use downbeat_common::page::style;
use downbeat_common::page::svg::{Picture, text_width};
use downbeat_common::units;

/// Line of one experiment.
#[derive(Debug)]
pub(crate) struct AverageLine {
    pub(crate) name: String,
    /// Points, sorted by size.
    pub(crate) points: Vec<AveragePoint>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AveragePoint {
    pub(crate) bytes: u64,
    pub(crate) average: IntervalTime,
}

/// Horizontal distance between experiments, so that their intervals do not hide each other.
const DISTANCE: f64 = 5.0;

/// Draws the lines; `None` if there are no points.
pub(crate) fn picture(title: String, average: &str, lines: &[AverageLine]) -> Option<Picture> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let mut sizes: Vec<u64> = points().map(|point| point.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let low = points()
        .map(|point| point.average.span().low)
        .reduce(f64::min)?;
    let high = points()
        .map(|point| point.average.span().high)
        .reduce(f64::max)?;
    let x = Axis::sizes(&sizes, data_width(text_width("10000")));
    let names: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    let mut frame = Frame::new(
        x,
        Axis::times(&format!("{average} run-time"), low, high, 5),
        &names,
        210.0,
    );
    for (series, line) in lines.iter().enumerate() {
        draw(
            &mut frame,
            series,
            line,
            DISTANCE * (series as f64 - 0.5 * (lines.len() - 1) as f64),
        );
    }
    Some(frame.finish(title, describe(lines)))
}

fn draw(frame: &mut Frame, series: usize, line: &AverageLine, offset: f64) {
    let place = |point: &AveragePoint| {
        let (x, y) = frame.at((size_place(point.bytes), point.average.nanos));
        (x + offset, y)
    };
    let places: Vec<_> = line.points.iter().map(place).collect();
    frame.canvas.path(&style::line(series), &places);
    for (AveragePoint { bytes, average }, (x, _)) in line.points.iter().zip(places) {
        let (size, time) = (units::bytes(*bytes), average.text());
        average.draw(frame, series, x, &format!("{}, {size}: {time}", line.name));
    }
}

fn describe(lines: &[AverageLine]) -> String {
    let describe_one = |line: &AverageLine| {
        let point = |point: &AveragePoint| {
            format!(
                "{} at {}",
                units::time(point.average.nanos),
                units::bytes(point.bytes)
            )
        };
        format!(
            "{}: {}.",
            line.name,
            line.points.iter().map(point).collect::<Vec<_>>().join(", ")
        )
    };
    lines.iter().map(describe_one).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_records::stats::Interval;

    fn line(name: &str, points: &[(u64, f64)]) -> AverageLine {
        let point = |(bytes, nanos): &(u64, f64)| {
            let interval = Some(Interval {
                low: nanos * 0.9,
                high: nanos * 1.1,
            });
            AveragePoint {
                bytes: *bytes,
                average: IntervalTime {
                    nanos: *nanos,
                    interval,
                },
            }
        };
        AverageLine {
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
        let picture = picture("medians".into(), "median", &lines).unwrap();
        let drawn = picture.inline(1);
        // Each of the four points has a marker, and each experiment another one in the legend.
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 3);
        assert_eq!(drawn.matches("class=\"m c1\"").count(), 3);
        assert!(drawn.contains(
            "one: 400.0 ns at 8 B, 900.0 ns at 1 KiB. two: 500.0 ns at 8 B, 30.00 us at 64 KiB."
        ));
        assert!(super::picture("none".into(), "median", &[line("one", &[])]).is_none());
    }
}
