//! Axes map values to positions, with ticks at round numbers.

use super::svg::text_width;
use crate::units::{self, TimeUnit, short};

#[derive(Clone, Copy, Debug, PartialEq)]
enum AxisScale {
    Linear,
    Logarithmic,
    /// Logarithmic in the value plus 1, so that it contains 0.
    Counts,
    /// Linear up to a value, on most of the axis, and logarithmic above it.
    Split {
        at: f64,
    },
}

/// Share of a split axis that is linear, and position where the logarithmic part begins.
const SPLIT: (f64, f64) = (0.76, 0.82);

/// Axis of a picture.
#[derive(Clone, Debug)]
pub struct Axis {
    scale: AxisScale,
    low: f64,
    high: f64,
    /// Quantity and unit.
    pub label: String,
    /// Values and texts of the ticks.
    pub ticks: Vec<(f64, String)>,
}

/// Ratio of the largest to the smallest value from which an axis is logarithmic.
const WIDE: f64 = 10.0;

impl Axis {
    /// Creates an axis of times from low to high in nanoseconds, with a margin; logarithmic if the range is wide.
    pub fn times(label: &str, low: f64, high: f64, ticks: usize) -> Self {
        if low > 0.0 && high / low >= WIDE {
            Self::log_times(label, low, high, ticks)
        } else {
            Self::linear_times(label, low, high, ticks)
        }
    }

    /// Creates a linear axis of times.
    pub fn linear_times(label: &str, low: f64, high: f64, ticks: usize) -> Self {
        Self::exact_times(label, with_margin(low, high), ticks)
    }

    fn exact_times(label: &str, (low, high): (f64, f64), ticks: usize) -> Self {
        let unit = TimeUnit::for_nanos(low.abs().max(high.abs()));
        let label = format!("{label}, {}", unit.name);
        Self::exact(
            &label,
            low,
            high,
            scaled_ticks(low, high, unit.nanos, ticks),
        )
    }

    /// Creates a logarithmic axis of times above 0.
    pub fn log_times(label: &str, low: f64, high: f64, ticks: usize) -> Self {
        Self::logarithmic(label, low, high, ticks, |nanos| {
            let unit = TimeUnit::for_nanos(nanos * 1.000_1);
            format!("{} {}", short(nanos / unit.nanos), unit.name)
        })
    }

    /// Creates a logarithmic axis of values above 0, whose ticks have these texts.
    pub fn logarithmic(
        label: &str,
        low: f64,
        high: f64,
        ticks: usize,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let margin = (high / low).powf(0.04);
        let (low, high) = (low / margin, high * margin);
        let ticks = log_ticks(low, high, ticks)
            .into_iter()
            .map(|at| (at, text(at)))
            .collect();
        Self {
            scale: AxisScale::Logarithmic,
            low,
            high,
            label: label.to_owned(),
            ticks,
        }
    }

    /// Creates an axis of times that is linear from low to the end of the usual times, and logarithmic for the few larger
    /// ones up to high.
    pub fn split_times(label: &str, low: f64, usual: f64, high: f64) -> Self {
        let mut axis = Self::linear_times(label, low, usual, 5);
        let at = axis.high;
        if !(at > 0.0 && high > at) {
            return axis;
        }
        let unit = TimeUnit::for_nanos(axis.low.abs().max(at.abs()));
        (axis.scale, axis.high) = (AxisScale::Split { at }, high * 1.05);
        let mut above = log_ticks(at, axis.high, 1);
        if above.is_empty() {
            above.push(high);
        }
        let mut free = SPLIT.1 + 0.02;
        for value in above {
            let share = axis.share(value);
            // Far enough from the tick below for both texts.
            if share >= free {
                free = share + 0.07;
                axis.ticks.push((value, short(value / unit.nanos)));
            }
        }
        axis
    }

    /// Returns the end of the linear part of a split axis.
    pub fn split(&self) -> Option<f64> {
        match self.scale {
            AxisScale::Split { at } => Some(at),
            AxisScale::Linear | AxisScale::Logarithmic | AxisScale::Counts => None,
        }
    }

    /// Creates a logarithmic axis of message sizes; size 0 is one step before the smallest.
    pub fn sizes(sizes: &[u64], width: f64) -> Self {
        let [low, high] = range(sizes.iter().map(|size| size_place(*size))).unwrap_or_default();
        // Half a step on both sides.
        let margin = (0.05 * (high - low)).max(0.5);
        let mut axis = Self::exact("size of a message", low - margin, high + margin, vec![]);
        let mut free = f64::NEG_INFINITY;
        for size in sizes {
            let (at, text) = (size_place(*size), units::bytes(*size));
            let (middle, half) = (axis.share(at) * width, 0.5 * text_width(&text));
            // Of two texts that would touch, the first is shown.
            if middle - half >= free {
                free = middle + half + 8.0;
                axis.ticks.push((at, text));
            }
        }
        axis
    }

    /// Creates an axis of shares in percent that contains zero.
    pub fn shares(label: &str, low: f64, high: f64, ticks: usize) -> Self {
        let (low, high) = with_margin(low.min(0.0), high.max(0.0));
        let ticks = linear_ticks(100.0 * low, 100.0 * high, ticks);
        let signed = |(at, text): (f64, String)| {
            let sign = if at > 0.0 && text.chars().any(|c| c.is_ascii_digit() && c != '0') {
                "+"
            } else {
                ""
            };
            (
                at / 100.0,
                format!("{sign}{}", text.replace('-', "\u{2212}")),
            )
        };
        let ticks = ticks.into_iter().map(signed).collect();
        Self::exact(label, low, high, ticks)
    }

    /// Creates an axis from zero to high in a unit.
    pub fn from_zero(label: &str, high: f64, unit: f64, ticks: usize) -> Self {
        let high = if high > 0.0 { 1.05 * high } else { unit };
        Self::exact(label, 0.0, high, scaled_ticks(0.0, high, unit, ticks))
    }

    /// Creates an axis of times from exactly 0 to exactly high, in nanoseconds.
    pub fn times_to(label: &str, high: f64, ticks: usize) -> Self {
        Self::exact_times(label, (0.0, high), ticks)
    }

    /// Creates an axis of counts from 0 to high, logarithmic in the count plus 1, so that both 1 and 1,000,000 are visible.
    /// It has only ticks whose texts fit at this length of the axis.
    pub fn counts(label: &str, high: f64, length: f64) -> Self {
        let mut axis = Self {
            scale: AxisScale::Counts,
            low: 0.0,
            high: 1.08 * high.max(1.0),
            label: label.to_owned(),
            ticks: vec![],
        };
        let apart =
            |places: &[f64]| (axis.share(places[1]) - axis.share(places[0])) * length >= 15.0;
        let round = [11, 7, 5, 4, 3, 2, 1].map(|wanted| log_ticks(1.0, axis.high, wanted));
        let fitting = round
            .into_iter()
            .find(|places| places.windows(2).all(apart))
            .unwrap_or_default();
        let zero = fitting
            .first()
            .is_none_or(|first| apart(&[0.0, *first]))
            .then_some(0.0);
        axis.ticks = zero
            .into_iter()
            .chain(fitting)
            .map(|at| (at, units::count(at as u64)))
            .collect();
        axis
    }

    /// Creates a linear axis from exactly low to exactly high.
    pub fn exact(label: &str, low: f64, high: f64, ticks: Vec<(f64, String)>) -> Self {
        Self {
            scale: AxisScale::Linear,
            low,
            high,
            label: label.to_owned(),
            ticks,
        }
    }

    /// Returns the position of a value: 0 at the beginning of the axis, 1 at its end.
    pub fn share(&self, value: f64) -> f64 {
        match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
            AxisScale::Counts => value.ln_1p() / self.high.ln_1p(),
            AxisScale::Split { at } if value <= at => {
                SPLIT.0 * (value - self.low) / (at - self.low)
            }
            AxisScale::Split { at } => {
                SPLIT.1 + (1.0 - SPLIT.1) * (value / at).ln() / (self.high / at).ln()
            }
        }
    }

    /// Returns true if a value is on the axis.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns the width of the widest text of a tick.
    pub fn widest_tick(&self) -> f64 {
        self.ticks
            .iter()
            .map(|(_, text)| text_width(text))
            .fold(0.0, f64::max)
    }
}

/// Returns the least and the greatest value.
pub fn range(values: impl IntoIterator<Item = f64>) -> Option<[f64; 2]> {
    let single = values.into_iter().map(|value| [value; 2]);
    single.reduce(|[low, high], [value, _]| [low.min(value), high.max(value)])
}

/// Returns the first of 1, 2, 5, 10, 20... that is at least this large.
pub fn round_step(least: f64) -> usize {
    let decades = (0..18).map(|power| 10_usize.pow(power));
    let mut steps = decades.flat_map(|ten| [ten, 2 * ten, 5 * ten]);
    steps
        .find(|step| *step as f64 >= least)
        .unwrap_or(usize::MAX)
}

/// Returns the value of a message size on its axis.
pub fn size_place(size: u64) -> f64 {
    if size == 0 {
        -1.0
    } else {
        (size as f64).log2()
    }
}

/// Adds a margin to a range, which may be empty.
fn with_margin(low: f64, high: f64) -> (f64, f64) {
    let width = high - low;
    let margin = if width > 1e-9 * high.abs().max(low.abs()) {
        0.05 * width
    } else {
        (0.05 * high.abs()).max(1e-9)
    };
    (low - margin, high + margin)
}

/// Returns round numbers between low and high, about as many as wanted, with their texts.
pub fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let raw = (high - low) / wanted.max(1) as f64;
    if !(raw > 0.0 && raw.is_finite()) {
        return Vec::new();
    }
    let power = raw.log10().floor();
    let ten = 10_f64.powf(power);
    let (step, more) = match raw / ten {
        r if r <= 1.0 => (1.0, 0.0),
        r if r <= 2.0 => (2.0, 0.0),
        r if r <= 2.5 => (2.5, 1.0),
        r if r <= 5.0 => (5.0, 0.0),
        _ => (10.0, -1.0),
    };
    let step = step * ten;
    let decimals = (more - power).max(0.0) as usize;
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last)
        .map(|i| {
            let at = i as f64 * step;
            let text = format!("{:.decimals$}", if i == 0 { 0.0 } else { at });
            (at, units::grouped(&text))
        })
        .collect()
}

/// Returns values between low and high that are round in a unit, with their texts in it.
fn scaled_ticks(low: f64, high: f64, unit: f64, wanted: usize) -> Vec<(f64, String)> {
    let ticks = linear_ticks(low / unit, high / unit, wanted).into_iter();
    ticks.map(|(at, text)| (at * unit, text)).collect()
}

/// Returns round numbers between low and high for a logarithmic axis, at most about as many as wanted: powers of ten, or 1,
/// 2, 5.
fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let between = |digits: &[f64], every: i32| -> Vec<f64> {
        let chosen = powers.clone().filter(|power| power.rem_euclid(every) == 0);
        let all =
            chosen.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        all.filter(|at| (low..=high).contains(at)).collect()
    };
    let fine = between(&[1.0, 2.0, 5.0], 1);
    if fine.len() <= 2 * wanted {
        return fine;
    }
    (1..)
        .map(|every| between(&[1.0], every))
        .find(|ticks| ticks.len() <= wanted + 2)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_numbers() {
        let found = [0.1, 1.0, 1.1, 2.5, 7.0, 201.0].map(round_step);
        assert_eq!(found, [1, 1, 2, 5, 10, 500]);
    }

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_at_round_numbers() {
        let ticks = |low, high| {
            linear_ticks(low, high, 5)
                .into_iter()
                .map(|(_, text)| text)
                .collect::<Vec<_>>()
        };
        assert_eq!(ticks(0.0, 10.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(ticks(-0.3, 0.9), ["-0.25", "0.00", "0.25", "0.50", "0.75"]);
        assert_eq!(
            ticks(374.9, 375.31),
            ["374.9", "375.0", "375.1", "375.2", "375.3"]
        );
        assert_eq!(
            ticks(0.0, 45_000.0),
            ["0", "10,000", "20,000", "30,000", "40,000"]
        );
        assert!(ticks(1.0, 1.0).is_empty() && ticks(f64::NAN, 1.0).is_empty());
    }

    #[test]
    fn wide_ranges_of_times_are_logarithmic() {
        let near = Axis::times("run-time", 400.0, 600.0, 5);
        assert_eq!(
            (near.label.as_str(), texts(&near)),
            ("run-time, ns", vec!["400", "450", "500", "550", "600"])
        );
        let far = Axis::times("run-time", 400.0, 60_000.0, 5);
        assert_eq!(
            (far.label.as_str(), texts(&far)),
            (
                "run-time",
                vec!["500 ns", "1 us", "2 us", "5 us", "10 us", "20 us", "50 us"]
            )
        );
        assert!((far.share((400.0_f64 * 60_000.0).sqrt()) - 0.5).abs() < 1e-12);
        let farther = Axis::times("run-time", 1.0, 1e9, 5);
        assert_eq!(
            texts(&farther),
            ["1 ns", "100 ns", "10 us", "1 ms", "100 ms"]
        );
        // Values below zero have no logarithm.
        assert_eq!(
            texts(&Axis::times("run-time", -10.0, 60_000.0, 5)),
            ["0", "20", "40", "60"]
        );
    }

    #[test]
    fn outliers_have_their_own_part_of_a_split_axis() {
        let axis = Axis::split_times("run-time", 400.0, 500.0, 90_000.0);
        let at = axis.split().unwrap();
        assert!((500.0..510.0).contains(&at) && axis.contains(90_000.0));
        let places = [400.0, 450.0, at, at + 1.0, 1_000.0, 90_000.0].map(|value| axis.share(value));
        assert!(
            places.is_sorted()
                && (places[2] - SPLIT.0).abs() < 1e-12
                && places[3] > SPLIT.1
                && places[5] < 1.0,
            "{places:?}"
        );
        assert_eq!(
            texts(&axis),
            ["400", "425", "450", "475", "500", "1,000", "10,000"]
        );
        assert_eq!(
            Axis::split_times("run-time", 400.0, 500.0, 502.0).split(),
            None
        );
    }

    #[test]
    fn equal_values_have_an_axis_too() {
        for value in [0.0, 375.0, 1e12] {
            let axis = Axis::times("run-time", value, value, 5);
            assert!(
                (axis.share(value) - 0.5).abs() < 1e-6 && axis.contains(value),
                "{axis:?}"
            );
        }
    }

    #[test]
    fn counts_begin_with_zero_and_show_one_next_to_many() {
        let few = Axis::counts("events", 3.0, 150.0);
        assert_eq!((texts(&few), few.share(0.0)), (vec!["0", "1", "2"], 0.0));
        let many = Axis::counts("events", 1_000_000.0, 150.0);
        assert_eq!(texts(&many)[..3], ["1", "10", "100"]);
        assert!(many.share(1.0) > 0.04 && many.share(1_000_000.0) < 1.0);
        assert_eq!(texts(&Axis::counts("events", 0.0, 150.0)), ["0", "1"]);
    }

    #[test]
    fn sizes_that_would_touch_are_left_out() {
        let few = Axis::sizes(&[0, 1, 8, 1_024], 400.0);
        assert_eq!(texts(&few), ["0 B", "1 B", "8 B", "1 KiB"]);
        let many: Vec<u64> = (0..=20).map(|power| 1 << power).collect();
        let many = Axis::sizes(&many, 400.0);
        assert!(many.ticks.len() >= 5 && many.ticks.len() <= 8, "{many:?}");
        let one = Axis::sizes(&[0], 400.0);
        assert_eq!((texts(&one), one.share(one.ticks[0].0)), (vec!["0 B"], 0.5));
    }

    #[test]
    fn shares_have_signs_and_zero() {
        let shares = Axis::shares("shift, %", 0.02, 0.051, 4);
        assert_eq!(texts(&shares), ["0", "+2", "+4"]);
        assert_eq!(
            texts(&Axis::shares("shift, %", -0.011, 0.0, 4)),
            ["\u{2212}1.0", "\u{2212}0.5", "0.0"]
        );
    }
}
