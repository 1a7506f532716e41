//! Points of several series in the plane.

use super::axis::Axis;
use super::frame::Frame;
use super::style;
use super::svg::Picture;
use crate::units::joined;

/// Point of one series.
#[derive(Clone, Debug)]
pub struct ScatterPoint {
    /// Index of the series.
    pub series: usize,
    /// Horizontal and vertical value.
    pub at: (f64, f64),
    /// Ends of the interval of the vertical value, over which a bar is drawn.
    pub interval: Option<[f64; 2]>,
    /// Text for readers who point at it.
    pub text: String,
}

impl ScatterPoint {
    /// Draws the marker of the series, so far right of its place.
    pub fn draw(&self, frame: &mut Frame, aside: f64) {
        const END: f64 = 3.0;
        let (x, y) = frame.at(self.at);
        let x = x + aside;
        let ends = self
            .interval
            .map(|ends| ends.map(|value| frame.at_y(value)));
        frame.canvas.titled(&self.text, |canvas| {
            let class = format!("e {}", style::colour(self.series));
            if let Some([low, high]) = ends {
                canvas.line(&class, (x, low), (x, high));
                for y in [low, high] {
                    canvas.line(&class, (x - END, y), (x + END, y));
                }
            }
            canvas.marker(self.series, (x, y));
        });
    }
}

/// Draws the points; `None` if there are none.
pub fn picture(
    title: &str,
    [x, y]: [Axis; 2],
    names: &[String],
    points: &[ScatterPoint],
) -> Option<Picture> {
    if points.is_empty() {
        return None;
    }
    let mut frame = Frame::new(x, y, names, 210.0);
    for point in points {
        point.draw(&mut frame, 0.0);
    }
    let texts = points.iter().map(|point| &point.text);
    Some(frame.finish(title.to_owned(), joined(texts, "; ")))
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
            interval: None,
            text: format!("{x} of {series}"),
        };
        let names = ["one".to_owned(), "two".to_owned()];
        let points = [point(0, 1.0), point(0, 2.0), point(1, 50.0)];
        let draw = |points: &[ScatterPoint]| picture("points", axes(), &names, points);
        let drawn = draw(&points).unwrap().inline(1);
        // One more of each is in the legend.
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 3);
        assert_eq!(drawn.matches("class=\"m c1\"").count(), 2);
        assert!(drawn.contains("50 of 1"));
        assert!(draw(&[]).is_none());
    }
}
