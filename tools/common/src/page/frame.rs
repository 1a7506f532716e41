//! Frame around the data of a picture: axes, a grid, and a legend.

use super::axis::Axis;
use super::style;
use super::svg::{Canvas, LINE, Picture, TextAnchor, WIDTH, fitting, text_width};

/// Picture with axes, and the position of the data in it.
#[derive(Debug)]
pub struct Frame {
    /// Shapes drawn so far.
    pub canvas: Canvas,
    /// Horizontal axis, from left to right.
    pub x: Axis,
    /// Vertical axis, from bottom to top.
    pub y: Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Minimum width left of the vertical axis.
const MARGIN: f64 = 30.0;
/// Minimum width right of the data.
const RIGHT: f64 = 12.0;

impl Frame {
    /// Draws the axes, and a legend if there are several names.
    pub fn new(x: Axis, y: Axis, names: &[String], height: f64) -> Self {
        let mut canvas = Canvas::default();
        let legend = match names.len() {
            0 | 1 => 0.0,
            _ => legend(&mut canvas, names),
        };
        let left = (y.widest_tick() + 12.0).max(MARGIN);
        let top = legend + LINE + 8.0;
        let right = right_end(left, &x);
        let mut frame = Self {
            canvas,
            x,
            y,
            left,
            right,
            top,
            bottom: top + height,
        };
        frame.draw_axes(legend);
        frame
    }

    fn draw_axes(&mut self, legend: f64) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        for (at, text) in self.y.ticks.clone() {
            let y = self.at_y(at);
            self.canvas.line("grid", (left, y), (right, y));
            self.canvas
                .text("", (left - 6.0, y + 4.5), TextAnchor::End, &text);
        }
        let every = self.shown_texts();
        for (number, (at, text)) in self.x.ticks.clone().into_iter().enumerate() {
            let x = self.at_x(at);
            self.canvas.line("axis", (x, bottom), (x, bottom + 4.0));
            if number.is_multiple_of(every) {
                self.canvas
                    .text("", (x, bottom + 17.0), TextAnchor::Middle, &text);
            }
        }
        self.canvas
            .path("axis", &[(left, top), (left, bottom), (right, bottom)]);
        self.canvas.text(
            "quiet",
            (2.0, legend + LINE - 5.0),
            TextAnchor::Start,
            &self.y.label,
        );
        let middle = 0.5 * (left + right);
        self.canvas.text(
            "quiet",
            (middle, bottom + 17.0 + LINE),
            TextAnchor::Middle,
            &self.x.label,
        );
    }

    /// Returns 1 if the texts of all horizontal ticks fit beside each other, 2 if those
    /// of every second do, and so on.
    fn shown_texts(&self) -> usize {
        /// Space between two texts.
        const APART: f64 = 4.0;
        let ticks = &self.x.ticks;
        let fit = |every: &usize| {
            let mut free = f64::NEG_INFINITY;
            ticks.iter().step_by(*every).all(|(at, text)| {
                let (middle, half) = (self.at_x(*at), 0.5 * text_width(text));
                let fits = middle - half >= free;
                free = middle + half + APART;
                fits
            })
        };
        (1..ticks.len()).find(fit).unwrap_or(ticks.len().max(1))
    }

    /// Returns the horizontal position of a value.
    pub fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.share(value) * (self.right - self.left)
    }

    /// Returns the vertical position of a value.
    pub fn at_y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }

    /// Returns the position of a pair of values.
    pub fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.at_x(x), self.at_y(y))
    }

    /// Returns the upper end of the data.
    pub fn top(&self) -> f64 {
        self.top
    }

    /// Returns the lower end of the data.
    pub fn bottom(&self) -> f64 {
        self.bottom
    }

    /// Draws a line over the whole height at a horizontal value.
    pub fn vertical(&mut self, class: &str, value: f64) {
        let x = self.at_x(value);
        self.canvas.line(class, (x, self.top), (x, self.bottom));
    }

    /// Makes the part between two horizontal values, from a position down to the axis,
    /// show a text where a reader points at it.
    pub fn name_part(&mut self, text: &str, ends: [f64; 2], top: f64) {
        let [left, right] = ends.map(|value| self.at_x(value));
        let size = (right - left, self.bottom - top);
        self.canvas
            .titled(text, |canvas| canvas.rectangle("hit", (left, top), size));
    }

    /// Returns the picture with its title and description.
    pub fn finish(self, title: String, description: String) -> Picture {
        let below = if self.x.label.is_empty() {
            22.0
        } else {
            22.0 + LINE
        };
        Picture::new(title, description, self.bottom + below, self.canvas)
    }
}

/// Returns the right end of the data: far enough from the border for the texts of all ticks, which are centred below them.
fn right_end(left: f64, x: &Axis) -> f64 {
    let fits = |(at, text): &(f64, String)| {
        let share = x.share(*at);
        (share > 0.0).then(|| left + (WIDTH - 1.0 - 0.5 * text_width(text) - left) / share)
    };
    let ends = x.ticks.iter().filter_map(fits);
    ends.fold(WIDTH - RIGHT, f64::min)
}

/// Returns the width of the data if the texts of the ticks have this width.
pub fn data_width(widest_tick: f64) -> f64 {
    WIDTH - RIGHT - (widest_tick + 12.0).max(MARGIN)
}

/// Draws a legend of all series, in as many rows as necessary; returns its height.
fn legend(canvas: &mut Canvas, names: &[String]) -> f64 {
    const SAMPLE: f64 = 30.0;
    let (mut x, mut y) = (2.0, LINE - 5.0);
    for (series, name) in names.iter().enumerate() {
        let name = fitting(name, WIDTH - SAMPLE - 12.0);
        let width = SAMPLE + 6.0 + text_width(&name) + 14.0;
        if x > 2.0 && x + width > WIDTH {
            (x, y) = (2.0, y + LINE);
        }
        canvas.line(&style::line(series), (x, y - 4.5), (x + SAMPLE, y - 4.5));
        canvas.marker(series, (x + 0.5 * SAMPLE, y - 4.5));
        canvas.text("", (x + SAMPLE + 6.0, y), TextAnchor::Start, &name);
        x += width;
    }
    y + 5.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(x: Axis, y: Axis) -> Picture {
        Frame::new(x, y, &[], 150.0).finish("t".into(), "d".into())
    }

    proptest! {
        /// The last tick was cut off at the right border.
        #[test]
        fn no_text_is_clipped(
            low in 0.0..1e12_f64,
            length in 1.0..1e12_f64,
            ticks in 2_usize..9,
            powers in 1_u32..60,
        ) {
            let high = low + length;
            let y = || Axis::counts("events", high, 150.0);
            let sizes: Vec<u64> = (0..powers).map(|power| 1 << power).collect();
            for x in [
                Axis::linear_times("time", low, high, ticks),
                Axis::times("time", low, high, ticks),
                Axis::times_to("time", high, ticks),
                Axis::from_zero("share", high, 1.0, ticks),
                Axis::sizes(&sizes, data_width(y().widest_tick())),
            ] {
                prop_assert_eq!(drawn(x, y()).clipped(), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn texts_that_would_touch_are_left_out() {
        let texts = |high: f64| {
            let drawn = drawn(
                Axis::times("took", 1e6, high, 5),
                Axis::counts("events", 9.0, 150.0),
            );
            let drawn = drawn.inline(1);
            [
                "1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "1 s",
            ]
            .into_iter()
            .filter(|text| drawn.contains(&format!(">{text}</text>")))
            .collect::<Vec<_>>()
        };
        assert_eq!(
            texts(60e6),
            ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]
        );
        // Ten ticks would fill the axis.
        assert_eq!(texts(1e9), ["1 ms", "5 ms", "20 ms", "100 ms"]);
    }

    #[test]
    fn a_tick_at_the_end_has_space() {
        let x = || Axis::exact("x", 0.0, 1.0, vec![(1.0, "1,000,000 us".to_owned())]);
        let y = || Axis::counts("events", 1.0, 150.0);
        assert!(drawn(x(), y()).clipped().is_empty());
        let mut frame = Frame::new(x(), y(), &[], 150.0);
        let (end, bottom) = (WIDTH - RIGHT, frame.bottom() + 17.0);
        frame
            .canvas
            .text("", (end, bottom), TextAnchor::Middle, "1,000,000 us");
        let clipped = frame.finish("t".into(), "d".into()).clipped();
        assert_eq!(clipped, ["1,000,000 us"]);
    }
}
