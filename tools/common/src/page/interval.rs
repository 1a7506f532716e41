//! Times with their intervals: as text, and as points with bars.

use downbeat_records::stats::Interval;

use super::scatter::ScatterPoint;
use crate::units;

/// Time with its interval.
#[derive(Clone, Copy, Debug)]
pub struct IntervalTime {
    /// The time.
    pub nanos: f64,
    /// Confidence interval, if known.
    pub interval: Option<Interval>,
}

impl IntervalTime {
    /// Returns the time and the ends of its interval.
    pub fn values(self) -> impl Iterator<Item = f64> {
        let ends = self.interval.map(|Interval { low, high }| [low, high]);
        [self.nanos].into_iter().chain(ends.into_iter().flatten())
    }

    /// Writes the time with its interval: `4.20 us (4.10 us to 4.30 us)`.
    pub fn text(self) -> String {
        let interval = self.interval.map_or_else(String::new, |found| {
            let [low, high] = [found.low, found.high].map(units::time);
            format!(" ({low} to {high})")
        });
        units::time(self.nanos) + &interval
    }

    /// Returns the point of a series with this time, at a horizontal value.
    pub fn point(self, series: usize, x: f64, text: String) -> ScatterPoint {
        ScatterPoint {
            series,
            at: (x, self.nanos),
            interval: self.interval.map(|Interval { low, high }| [low, high]),
            text,
        }
    }
}
