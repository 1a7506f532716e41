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

impl Frame {
    /// Draws the axes, and a legend if there are several names.
    pub fn new(x: Axis, y: Axis, names: &[String], height: f64) -> Self {
        let mut canvas = Canvas::default();
        let legend = if names.len() > 1 {
            legend(&mut canvas, names)
        } else {
            0.0
        };
        Self::below(canvas, legend, x, y, height)
    }

    /// Draws the axes below a legend of this height.
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

/// Returns the width of the data if the texts of the ticks have this width.
pub fn data_width(widest_tick: f64) -> f64 {
    WIDTH - 12.0 - (widest_tick + 12.0).max(MARGIN)
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
