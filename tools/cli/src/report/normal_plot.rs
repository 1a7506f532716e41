//! Normal Q-Q plot: values over the quantiles of the normal distribution, on a straight line if they are normal.

use downbeat_common::output::probability;
use downbeat_records::stats::{Sample, ShapiroWilk};

use downbeat_common::page::axis::{Axis, linear_ticks};
use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::page::svg::Picture;
use downbeat_common::units;

/// Minimum number of values: the plot and the test of fewer find no deviation.
pub(crate) const FEWEST: usize = 8;

/// Draws times; `None` if there are too few, or all are the same.
pub(crate) fn picture(
    title: String,
    label: &str,
    series: usize,
    times: &Sample<'_>,
) -> Option<Picture> {
    if times.len() < FEWEST {
        return None;
    }
    let test = ShapiroWilk::new(times).ok()?;
    let points: Vec<(f64, f64)> = times.normal_points().collect();
    let line = quartile_line(times, &points)?;
    let ((from, low), (to, high)) = (points[0], points[points.len() - 1]);
    let verdict = format!("Shapiro-Wilk: p = {}", probability(test.p));
    let label_x = format!("quantile of the normal distribution ({verdict})");
    let [left, right] = [from, to].map(|quantile| 1.05 * quantile);
    let x = Axis::exact(&label_x, left, right, linear_ticks(left, right, 5));
    let y = Axis::linear_times(label, low.min(line(from)), high.max(line(to)), 5);
    let mut frame = Frame::new(x, y, &[], 210.0);
    let line_ends = [from, to].map(|at| frame.at((at, line(at))));
    frame.canvas.path("range", &line_ends);
    for (quantile, nanos) in &points {
        let at = frame.at((*quantile, *nanos));
        let text = format!("{} at the quantile {quantile:.2}", units::time(*nanos));
        frame.canvas.titled(&text, |canvas| {
            canvas.disc(&format!("m {}", style::colour(series)), at, 3.0);
        });
    }
    let [low, high] = [low, high].map(units::time);
    let description = format!(
        "{} values from {low} to {high}. {verdict}, W = {:.4}.",
        units::count(points.len() as u64),
        test.w
    );
    Some(frame.finish(title, description))
}

/// Returns the line through both quartiles, as R's `qqline`; `None` if there is no space between them.
fn quartile_line(times: &Sample<'_>, points: &[(f64, f64)]) -> Option<impl Fn(f64) -> f64 + use<>> {
    /// Upper quartile of the standard normal distribution.
    const QUARTILE: f64 = 0.674_489_750_196_081_7;
    let [lower, upper] = [0.25, 0.75].map(|share| times.quantile(share));
    let slope = (upper - lower) / (2.0 * QUARTILE);
    let middle = 0.5 * (lower + upper);
    let is_line = slope.is_finite() && points.len() > 1;
    is_line.then_some(move |quantile: f64| middle + slope * quantile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(mut times: Vec<f64>) -> Option<String> {
        let times = Sample::new(&mut times).unwrap();
        let picture = picture("normal".into(), "median run-time", 1, &times)?;
        Some(picture.inline(1))
    }

    #[test]
    fn every_value_is_a_point_and_the_test_is_named() {
        let mut times: Vec<f64> = (1..20).map(f64::from).collect();
        times.push(60.0);
        let drawn = drawn(times).unwrap();
        assert_eq!(drawn.matches("class=\"m c1\"").count(), 20);
        assert_eq!(drawn.matches("class=\"range\"").count(), 1);
        assert!(
            drawn.contains("20 values from 1.000 ns to 60.00 ns. Shapiro-Wilk: p = "),
            "{drawn}"
        );
    }

    #[test]
    fn values_on_the_line_are_normal() {
        let mut ranks: Vec<f64> = (0..99).map(f64::from).collect();
        let ranks = Sample::new(&mut ranks).unwrap();
        let mut times: Vec<f64> = ranks
            .normal_points()
            .map(|(quantile, _)| 500.0 + 10.0 * quantile)
            .collect();
        let times = Sample::new(&mut times).unwrap();
        let points: Vec<(f64, f64)> = times.normal_points().collect();
        let line = quartile_line(&times, &points).unwrap();
        // The quartiles of a sample are near those of the distribution.
        for (quantile, nanos) in points {
            assert!((line(quantile) - nanos).abs() < 0.5, "{quantile}: {nanos}");
        }
    }

    #[test]
    fn few_or_equal_values_are_not_drawn() {
        assert!(drawn((1..8).map(f64::from).collect()).is_none());
        assert!(drawn(vec![5.0; 20]).is_none());
    }
}
