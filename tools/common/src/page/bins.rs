//! Bins of decimal histograms: as times, as an axis, as bars.

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;

use super::axis::Axis;
use super::frame::Frame;
use super::svg::text_width;
use crate::units::{self, TimeUnit, short};

/// Minimum number of bins on an axis; with fewer, bars would be as wide as the picture.
const MIN_BINS: usize = 9;

/// Unit in which a report counts time.
#[derive(Clone, Copy, Debug)]
pub struct BinUnit {
    nanos: f64,
}

impl BinUnit {
    /// Creates the unit of reports that count in this tick.
    pub fn new(tick: Duration) -> Self {
        Self {
            nanos: tick.as_nanos() as f64,
        }
    }

    /// Converts ticks to nanoseconds.
    pub fn nanos(self, ticks: u128) -> f64 {
        ticks as f64 * self.nanos
    }

    /// Writes a time: `6.262 ms`.
    pub fn time(self, ticks: u128) -> String {
        units::time(self.nanos(ticks))
    }

    /// Writes the lower limit of a bin, as short as possible: `6 ms`.
    pub fn begin(self, bin: DecimalBin) -> String {
        let nanos = self.nanos(bin.low().into());
        if nanos == 0.0 {
            return "0".to_owned();
        }
        let unit = TimeUnit::for_nanos(nanos * 1.000_1);
        format!("{} {}", short(nanos / unit.nanos), unit.name)
    }

    /// Writes the limits of a bin: `6 to 7 ms`.
    pub fn span(self, bin: DecimalBin) -> String {
        self.span_by(bin, " to ")
    }

    /// Writes the limits of a bin as briefly as columns of a terminal need: `6-7 ms`.
    pub fn plain_span(self, bin: DecimalBin) -> String {
        self.span_by(bin, "-")
    }

    fn span_by(self, bin: DecimalBin, between: &str) -> String {
        let (low, end) = (
            self.nanos(bin.low().into()),
            self.nanos(u128::from(bin.high()) + 1),
        );
        let unit = TimeUnit::for_nanos(if low > 0.0 { low } else { end } * 1.000_1);
        format!(
            "{}{between}{} {}",
            short(low / unit.nanos),
            short(end / unit.nanos),
            unit.name
        )
    }
}

/// Creates an axis for these bins: all bins have the same width, and so do all powers of ten.
pub fn axis(
    label: &str,
    bins: impl Iterator<Item = DecimalBin> + Clone,
    width: f64,
    unit: BinUnit,
) -> Axis {
    let first = bins.clone().map(DecimalBin::index).min().unwrap_or(0);
    let last = bins.map(DecimalBin::index).max().unwrap_or(0);
    let more = MIN_BINS.saturating_sub(last + 1 - first);
    let first = first.saturating_sub(more / 2);
    let last = (last + more - more / 2).min(DecimalBin::COUNT - 1);
    Axis::exact(
        label,
        first as f64,
        last as f64 + 1.0,
        ticks(first, last, width, unit),
    )
}

/// Returns as many ticks as fit; 0 has one if it is on the axis.
fn ticks(first: usize, last: usize, width: f64, unit: BinUnit) -> Vec<(f64, String)> {
    let slot = width / (last + 1 - first) as f64;
    // The first digit of a bin is 1 at the beginning of its power of ten; the bin of 0 has none.
    let digit = |bin: DecimalBin| bin.index().checked_sub(1).map_or(0, |index| index % 9 + 1);
    let with = |digits: &[usize]| -> Vec<(f64, String)> {
        let bins = (first..=last)
            .filter_map(DecimalBin::from_index)
            .filter(|bin| digits.contains(&digit(*bin)));
        bins.map(|bin| (bin.index() as f64, unit.begin(bin)))
            .collect()
    };
    let fits = |ticks: &[(f64, String)]| {
        let half = |text: &str| 0.5 * text_width(text) + 3.0;
        let apart = |pair: &[(f64, String)]| {
            (pair[1].0 - pair[0].0) * slot > half(&pair[0].1) + half(&pair[1].1)
        };
        ticks.len() > 1 && ticks.windows(2).all(apart)
    };
    let all: Vec<usize> = (0..10).collect();
    let choices = [&all[..], &[1, 3, 5, 7], &[1, 4, 7], &[1, 5], &[1]];
    let mut ticks = choices
        .into_iter()
        .map(with)
        .find(|ticks| fits(ticks))
        .unwrap_or_else(|| {
            // Powers of ten that are too close to each other, or a single one.
            let each = with(&[1]);
            let every = 1 + (each.len() as f64 * 80.0 / width) as usize;
            each.into_iter().step_by(every).collect()
        });
    if let Some(next) = ticks.first_mut().filter(|(at, _)| first == 0 && *at == 1.0) {
        *next = (0.0, "0".to_owned());
    }
    ticks
}

/// Draws the bar of a bin, which a text describes where a reader points at its column; returns its horizontal limits.
pub fn draw(frame: &mut Frame, class: &str, bin: DecimalBin, height: f64, text: &str) -> [f64; 2] {
    let left = bin.index() as f64;
    let ((x, top), (end, bottom)) = (frame.at((left, height)), frame.at((left + 1.0, 0.0)));
    let gap = (0.08 * (end - x)).min(2.0);
    let above = frame.top();
    frame.canvas.titled(text, |canvas| {
        canvas.rectangle("hit", (x, above), (end - x, bottom - above));
        canvas.rectangle(class, (x + gap, top), (end - x - 2.0 * gap, bottom - top));
    });
    [x, end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_short_limits() {
        let span = |nanos, length| {
            BinUnit::new(Duration::from_nanos(nanos)).span(DecimalBin::containing(length))
        };
        assert_eq!(
            [span(1, 0), span(1, 7), span(1, 950)],
            ["0 to 1 ns", "7 to 8 ns", "900 to 1,000 ns"]
        );
        assert_eq!(
            [span(1_000_000, 6_262), span(2_500, 3)],
            ["6 to 7 s", "7.5 to 10 us"]
        );
        assert_eq!(
            BinUnit::new(Duration::from_nanos(2_500)).plain_span(DecimalBin::containing(3)),
            "7.5-10 us"
        );
        assert!(span(1, u64::MAX).ends_with(" s"));
        let begin =
            |length| BinUnit::new(Duration::from_nanos(1)).begin(DecimalBin::containing(length));
        assert_eq!(
            [begin(0), begin(7), begin(1_000_000)],
            ["0", "7 ns", "1 ms"]
        );
    }

    #[test]
    fn there_are_as_many_ticks_as_fit() {
        let ticks = |first: u64, last: u64| -> Vec<String> {
            let bins = [first, last].map(DecimalBin::containing).into_iter();
            let axis = axis("length", bins, 430.0, BinUnit::new(Duration::from_nanos(1)));
            axis.ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(
            ticks(0, 8),
            [
                "0", "1 ns", "2 ns", "3 ns", "4 ns", "5 ns", "6 ns", "7 ns", "8 ns"
            ]
        );
        assert_eq!(
            ticks(40, 900),
            ["50 ns", "70 ns", "100 ns", "300 ns", "500 ns", "700 ns"]
        );
        assert_eq!(ticks(600, 6_000_000), ["1 us", "10 us", "100 us", "1 ms"]);
        let all = ticks(0, u64::MAX);
        assert!((3..=7).contains(&all.len()) && all[0] == "0", "{all:?}");
        assert_eq!(
            ticks(5, 5).len(),
            MIN_BINS,
            "a single bar is no wider than others"
        );
    }
}
