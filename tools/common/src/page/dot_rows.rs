//! Rows of dots on one horizontal axis.

use super::axis::{Axis, range};
use super::frame::Frame;
use super::style;
use super::svg::Picture;

/// Row of values.
#[derive(Clone, Debug)]
pub struct DotRow {
    /// Text left of the row.
    pub label: String,
    /// Values of the row.
    pub dots: Vec<Dot>,
}

/// Value of one series in a row.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Index of the series.
    pub series: usize,
    /// Place on the axis.
    pub value: f64,
    /// Text for readers who point at it.
    pub text: String,
}

/// Height of one row.
const ROW: f64 = 17.0;

/// Draws the rows from top to bottom, each with a line between its ends, and a legend if there are several names of series; `None` if
/// there are no values. `label` describes the rows.
pub fn picture(
    title: String,
    description: String,
    x: Axis,
    label: &str,
    names: &[String],
    rows: &[DotRow],
) -> Option<Picture> {
    if rows.iter().all(|row| row.dots.is_empty()) {
        return None;
    }
    let place = |number: usize| -(number as f64 + 0.5);
    let ticks = rows.iter().enumerate();
    let ticks = ticks.map(|(number, row)| (place(number), row.label.clone()));
    let y = Axis::exact(label, -(rows.len() as f64) - 0.2, 0.2, ticks.collect());
    let mut frame = Frame::new(x, y, names, ROW * (rows.len() as f64).max(3.0));
    for (number, row) in rows.iter().enumerate() {
        if let Some(ends) = range(row.dots.iter().map(|dot| dot.value))
            && ends[0] < ends[1]
        {
            let [left, right] = ends.map(|value| frame.at((value, place(number))));
            frame.canvas.line("axis", left, right);
        }
        for dot in &row.dots {
            let at = frame.at((dot.value, place(number)));
            frame.canvas.titled(&dot.text, |canvas| match names.len() {
                // Where many are at one place, it is darker.
                0 | 1 => canvas.disc(&format!("half {}", style::colour(dot.series)), at, 4.0),
                _ => canvas.marker(dot.series, at),
            });
        }
    }
    Some(frame.finish(title, description))
}

#[cfg(test)]
mod tests {
    use super::super::axis::linear_ticks;
    use super::*;

    #[test]
    fn every_value_is_a_dot_in_its_row() {
        let row = |label: &str, values: &[f64]| DotRow {
            label: label.to_owned(),
            dots: (0..)
                .zip(values)
                .map(|(number, value)| Dot {
                    series: number % 2,
                    value: *value,
                    text: format!("{label}: {value}"),
                })
                .collect(),
        };
        let draw = |names: &[String], rows: &[DotRow]| {
            let x = Axis::exact("ratio", 1.0, 2.0, linear_ticks(1.0, 2.0, 4));
            picture("rows".into(), "of dots".into(), x, "size", names, rows)
        };
        let rows = [row("8 B", &[1.0, 1.25, 2.0]), row("1 KiB", &[1.5])];
        let drawn = draw(&[], &rows).unwrap().inline(1);
        let dots =
            ["c0", "c1"].map(|colour| drawn.matches(&format!("class=\"half {colour}\"")).count());
        assert_eq!(dots, [3, 1]);
        assert!(drawn.contains("1 KiB: 1.5") && drawn.contains(">8 B</text>"));
        // Markers tell several series apart, also in the legend.
        let drawn = draw(&["one".into(), "two".into()], &rows)
            .unwrap()
            .inline(1);
        assert_eq!(drawn.matches("class=\"m c0\"").count(), 3 + 1);
        assert!(draw(&[], &[row("8 B", &[])]).is_none());
    }
}
