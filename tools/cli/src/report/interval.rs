//! Times with their intervals: as text, and as a marker with a bar.

use downbeat_common::page::frame::Frame;
use downbeat_common::page::style;
use downbeat_common::units;
use downbeat_records::stats::Interval;

/// Time with its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalTime {
    pub(crate) nanos: f64,
    /// Confidence interval, if known.
    pub(crate) interval: Option<Interval>,
}

impl IntervalTime {
    /// Returns the range of the time and its interval.
    pub(super) fn span(self) -> Interval {
        let Self { nanos, interval } = self;
        interval.map_or(
            Interval {
                low: nanos,
                high: nanos,
            },
            |Interval { low, high }| Interval {
                low: nanos.min(low),
                high: nanos.max(high),
            },
        )
    }

    /// Writes the time with its interval: `4.20 us (4.10 us to 4.30 us)`.
    pub(super) fn text(self) -> String {
        let interval = self.interval.map_or_else(String::new, |found| {
            let [low, high] = [found.low, found.high].map(units::time);
            format!(" ({low} to {high})")
        });
        units::time(self.nanos) + &interval
    }

    /// Draws a marker with a bar at a horizontal position, and shows a text where a reader points at it.
    pub(super) fn draw(self, frame: &mut Frame, series: usize, x: f64, text: &str) {
        /// Half of the length of the ends of a bar.
        const END: f64 = 3.0;
        let middle = frame.at_y(self.nanos);
        let ends = self
            .interval
            .map(|Interval { low, high }| [low, high].map(|nanos| frame.at_y(nanos)));
        frame.canvas.titled(text, |canvas| {
            let class = format!("e {}", style::colour(series));
            if let Some([low, high]) = ends {
                canvas.line(&class, (x, low), (x, high));
                for y in [low, high] {
                    canvas.line(&class, (x - END, y), (x + END, y));
                }
            }
            canvas.marker(series, (x, middle));
        });
    }
}
