//! What is around the data of a picture: axes, a grid, and a legend.

use super::axis::Axis;
use super::style;
use super::svg::{Canvas, LINE, Picture, TextAnchor, WIDTH, fitting, text_width};

/// The place of the data in a picture, and what has been drawn.
#[derive(Debug)]
pub struct Frame {
    /// What has been drawn.
    pub canvas: Canvas,
    /// From left to right.
    pub x: Axis,
    /// From below.
    pub y: Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// What is left of the axis, at least.
const MARGIN: f64 = 30.0;

impl Frame {
    /// Draws the axes and the legend; there is one only if there are several names.
    pub fn new(x: Axis, y: Axis, names: &[String], height: f64) -> Self {
        let mut canvas = Canvas::default();
        let legend = if names.len() > 1 {
            legend(&mut canvas, names)
        } else {
            0.0
        };
        Self::below(canvas, legend, x, y, height)
    }

    /// Draws the axes below a legend of that height.
    pub fn below(canvas: Canvas, legend: f64, x: Axis, y: Axis, height: f64) -> Self {
        let left = (y.widest_tick() + 12.0).max(MARGIN);
        let top = legend + LINE + 8.0;
        let mut frame = Self {
            canvas,
            x,
            y,
            left,
            right: WIDTH - 12.0,
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
        for (at, text) in self.x.ticks.clone() {
            let x = self.at_x(at);
            self.canvas.line("axis", (x, bottom), (x, bottom + 4.0));
            self.canvas
                .text("", (x, bottom + 17.0), TextAnchor::Middle, &text);
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

    /// The horizontal place of a value.
    pub fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.share(value) * (self.right - self.left)
    }

    /// The vertical place of a value.
    pub fn at_y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }

    /// The place of both.
    pub fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.at_x(x), self.at_y(y))
    }

    /// Where the data begin.
    pub fn top(&self) -> f64 {
        self.top
    }

    /// Where they end.
    pub fn bottom(&self) -> f64 {
        self.bottom
    }

    /// The picture, with what it is called and what there is to be seen.
    pub fn finish(self, title: String, description: String) -> Picture {
        let below = if self.x.label.is_empty() {
            22.0
        } else {
            22.0 + LINE
        };
        Picture::new(title, description, self.bottom + below, self.canvas)
    }
}

/// How wide the data is if the texts at the ticks are this wide.
pub fn data_width(widest_tick: f64) -> f64 {
    WIDTH - 12.0 - (widest_tick + 12.0).max(MARGIN)
}

/// Draws what each series looks like, in as many rows as it takes; returns their height.
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
