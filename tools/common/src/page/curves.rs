//! Curves of several series over one quantity.

use super::axis::{Axis, linear_ticks, range};
use super::frame::Frame;
use super::style;
use super::svg::Picture;
use crate::units::joined;

/// Curve with its name, which the legend shows.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Name of the series.
    pub name: String,
    /// Points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Maximum number of points of a curve that are marked.
const MOST_MARKERS: usize = 20;

/// Draws the curves; `None` if there are no points.
pub fn picture(
    title: &str,
    description: String,
    [x, y]: [Axis; 2],
    curves: &[Curve],
) -> Option<Picture> {
    if curves.iter().all(|curve| curve.points.is_empty()) {
        return None;
    }
    let names: Vec<String> = curves.iter().map(|curve| curve.name.clone()).collect();
    let mut frame = Frame::new(x, y, &names, 210.0);
    for (series, curve) in curves.iter().enumerate() {
        let places: Vec<_> = curve.points.iter().map(|point| frame.at(*point)).collect();
        frame.canvas.titled(&curve.name, |canvas| {
            canvas.path(&style::line(series), &places);
            // Many would hide the line.
            if places.len() <= MOST_MARKERS {
                places
                    .iter()
                    .for_each(|place| canvas.marker(series, *place));
            }
        });
    }
    Some(frame.finish(title.to_owned(), description))
}

/// Draws curves over seconds. The axis of their values is made for a range with zero.
pub fn over_time(
    title: &str,
    description: impl Fn(&Curve) -> String,
    axis: impl Fn([f64; 2]) -> Axis,
    curves: &[Curve],
) -> Option<Picture> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let [_, end] = range(points().map(|(time, _)| *time))?;
    let [low, high] = range(points().map(|(_, value)| *value))?;
    let axes = [
        Axis::exact("time, s", 0.0, end, linear_ticks(0.0, end, 6)),
        axis([low.min(0.0), high.max(0.0)]),
    ];
    let described = joined(curves.iter().map(description), " ");
    picture(title, described, axes, curves)
}

#[cfg(test)]
mod tests {
    use super::super::axis::linear_ticks;
    use super::*;

    #[test]
    fn every_curve_is_a_line_with_its_name() {
        let axes = || {
            [
                Axis::exact("time, s", 0.0, 2.0, linear_ticks(0.0, 2.0, 4)),
                Axis::linear_times("offset", -5.0, 5.0, 5),
            ]
        };
        let curve = |name: &str, end| Curve {
            name: name.to_owned(),
            points: vec![(0.0, 0.0), (2.0, end)],
        };
        let draw = |curves: &[Curve]| picture("curves", "two".into(), axes(), curves);
        let drawn = draw(&[curve("rank 1", 5.0), curve("rank 2", -5.0)]).unwrap();
        let drawn = drawn.inline(1);
        for name in ["rank 1", "rank 2"] {
            assert_eq!(drawn.matches(&format!("<title>{name}</title>")).count(), 1);
        }
        assert!(draw(&[]).is_none());
    }
}
