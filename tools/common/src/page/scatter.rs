//! Points of several series in the plane.

use super::axis::Axis;
use super::frame::Frame;
use super::svg::Picture;

/// Point of one series.
#[derive(Clone, Debug)]
pub struct ScatterPoint {
    /// Index of the series.
    pub series: usize,
    /// Horizontal and vertical value.
    pub at: (f64, f64),
    /// Text for readers who point at it.
    pub text: String,
}

/// Draws the points; `None` if there are none.
pub fn picture(
    title: String,
    description: String,
    [x, y]: [Axis; 2],
    names: &[String],
    points: &[ScatterPoint],
) -> Option<Picture> {
    if points.is_empty() {
        return None;
    }
    let mut frame = Frame::new(x, y, names, 210.0);
    for point in points {
        let at = frame.at(point.at);
        frame.canvas.titled(&point.text, |canvas| {
            canvas.marker(point.series, at);
        });
    }
    Some(frame.finish(title, description))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_the_marker_of_its_series() {
        let axes = || {
            [
                Axis::times("took", 1.0, 100.0, 5),
                Axis::times("error", 1.0, 100.0, 5),
            ]
        };
        let point = |series, x| ScatterPoint {
            series,
            at: (x, 10.0),
            text: format!("{x} of {series}"),
        };
        let names = ["one".to_owned(), "two".to_owned()];
        let points = [point(0, 1.0), point(0, 2.0), point(1, 50.0)];
        let draw = |points: &[ScatterPoint]| {
            picture("points".into(), "three".into(), axes(), &names, points)
        };
        let drawn = draw(&points).unwrap().inline(1);
        // One more of each is in the legend.
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 3);
        assert_eq!(drawn.matches("class=\"m c1\"").count(), 2);
        assert!(drawn.contains("50 of 1"));
        assert!(draw(&[]).is_none());
    }
}
