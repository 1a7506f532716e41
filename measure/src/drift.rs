//! Drift of clocks: linear fits to their offsets over time windows, and the residuals of a linear interpolation from the
//! first to the last offset.

mod watch;

use core::fmt;

use downbeat_clock_core::fit::OffsetFit;
use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Domain, Duration, Timestamp};

use crate::error::MeasureError;
pub use watch::{DriftRound, DriftWatch};

/// Offsets of one clock to another, in chronological order.
///
/// ```
/// use downbeat_clock_core::offset::OffsetSample;
/// use downbeat_clock_core::{Duration, Local, Timestamp};
/// use downbeat_measure::drift::{FitQuality, OffsetSeries};
///
/// // A clock that gains 2 us per second for a minute, and then keeps its offset.
/// let second = |n: i64| OffsetSample {
///     at: Timestamp::<Local>::ORIGIN + Duration::from_secs(n),
///     offset: Duration::from_micros(2 * n.min(60)),
///     half_width: Some(Duration::from_nanos(50)),
/// };
/// let series = OffsetSeries::new((0..=120).map(second).collect())?;
///
/// let minutes = series.windows(Duration::from_secs(60), Duration::from_secs(1));
/// assert_eq!((minutes.len(), minutes[0].quality), (2, FitQuality::Exact));
/// assert!((minutes[0].drift - 2e-6).abs() < 1e-15);
/// assert_eq!((minutes[1].drift, minutes[1].quality), (0.0, FitQuality::Constant));
///
/// // In the middle, the interpolation from the first to the last offset is wrong by a minute's drift.
/// let residual = series.begin_to_end().ok_or("more than two offsets")?;
/// assert_eq!((residual.largest, residual.after), (Duration::from_micros(60), Duration::from_secs(60)));
/// assert_eq!(residual.exceeds(Duration::from_micros(1)), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetSeries<C: Domain> {
    samples: Vec<OffsetSample<C>>,
}

/// Quality of a linear fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FitQuality {
    /// R-squared: 1 minus the ratio of the sum of squared residuals to the sum of squared distances from the mean.
    RSquared(f64),
    /// The line goes through all offsets, as it always does for two.
    Exact,
    /// All offsets are equal.
    Constant,
}

/// Writes R-squared for tables, or the reason why it is not defined.
impl fmt::Display for FitQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RSquared(share) => write!(f, "{share:.4}"),
            Self::Exact => f.write_str("exact"),
            Self::Constant => f.write_str("constant"),
        }
    }
}

/// Linear fit to the offsets of a time window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowFit<C: Domain> {
    /// Time of the first offset.
    pub began: Timestamp<C>,
    /// Number of offsets.
    pub samples: u64,
    /// Growth of the offset, as a fraction of the elapsed time.
    pub drift: f64,
    /// Quality of the fit.
    pub quality: FitQuality,
    /// Signed residual of the greatest absolute value.
    pub largest_residual: Duration,
}

/// Residual of offsets after subtracting the line from the first to the last of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffsetResidual {
    /// Residual of the greatest absolute value.
    pub largest: Duration,
    /// Time of that residual since the first offset.
    pub after: Duration,
    /// Lower and upper limit of the greatest true residual's absolute value; `None` unless all offsets have a half-width.
    pub bounds: Option<(Duration, Duration)>,
}

impl OffsetResidual {
    /// Returns true if clocks that are corrected by this interpolation differ by more than the latency of a message, so
    /// that a message can appear to arrive before it was sent. `None` if the offsets are too uncertain to decide.
    pub fn exceeds(&self, latency: Duration) -> Option<bool> {
        match self.bounds? {
            (least, _) if least > latency => Some(true),
            (_, most) if most <= latency => Some(false),
            _ => None,
        }
    }
}

impl<C: Domain> OffsetSeries<C> {
    /// Creates a series of offsets, of which each must be later than the one before by the clock that they belong to.
    ///
    /// # Errors
    /// If an offset is not later than the one before.
    pub fn new(samples: Vec<OffsetSample<C>>) -> Result<Self, MeasureError> {
        match samples.windows(2).position(|pair| pair[1].at <= pair[0].at) {
            Some(place) => Err(MeasureError::ClockSetBack { index: place + 1 }),
            None => Ok(Self { samples }),
        }
    }

    /// Returns all offsets.
    pub fn samples(&self) -> &[OffsetSample<C>] {
        &self.samples
    }

    /// Fits a line to all offsets; `None` if there are fewer than two.
    pub fn fit(&self) -> Option<WindowFit<C>> {
        fit(&self.samples)
    }

    /// Fits lines to consecutive windows of this length. Windows with fewer than two offsets are left out, and so is an
    /// incomplete window at the end. `every` is the time between two offsets: as this time is not kept exactly, the last
    /// window is complete if less than this time is missing at its end.
    pub fn windows(&self, length: Duration, every: Duration) -> Vec<WindowFit<C>> {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return Vec::new();
        };
        let after = |at: Timestamp<C>| i128::from(at.as_nanos()) - i128::from(first.at.as_nanos());
        let length = i128::from(length.as_nanos().max(1));
        let whole = (after(last.at) + i128::from(every.as_nanos().max(0))) / length;
        let is_complete = |samples: &&[OffsetSample<C>]| {
            samples
                .first()
                .is_some_and(|s| after(s.at) / length < whole)
        };
        let windows = self
            .samples
            .chunk_by(|a, b| after(a.at) / length == after(b.at) / length);
        windows.filter(is_complete).filter_map(fit).collect()
    }

    /// Returns the residual of the line through the first and the last offset, by which trace tools interpolate that measure
    /// offsets at the beginning and at the end of a program; `None` if there are fewer than three offsets.
    pub fn begin_to_end(&self) -> Option<OffsetResidual> {
        let [first, between @ .., last] = self.samples.as_slice() else {
            return None;
        };
        let whole = difference(last.at.as_nanos(), first.at.as_nanos());
        let rise = difference(last.offset.as_nanos(), first.offset.as_nanos());
        let width =
            |sample: &OffsetSample<C>| sample.half_width.map(|width| width.as_nanos() as f64);
        let residual = between.iter().map(|sample| {
            let share = difference(sample.at.as_nanos(), first.at.as_nanos()) / whole;
            let residual =
                difference(sample.offset.as_nanos(), first.offset.as_nanos()) - share * rise;
            let ends_width = width(first)
                .zip(width(last))
                .map(|(a, b)| a * (1.0 - share) + b * share);
            (
                sample,
                residual,
                width(sample)
                    .zip(ends_width)
                    .map(|(own, ends_width)| own + ends_width),
            )
        });
        let residual: Vec<_> = residual.collect();
        let (sample, largest, _) = residual
            .iter()
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let bounds = residual.iter().map(|(_, residual, width)| {
            width.map(|width| (residual.abs() - width, residual.abs() + width))
        });
        let bounds: Option<Vec<(f64, f64)>> = bounds.collect();
        let bounds = bounds.map(|all| {
            let largest =
                |which: fn(&(f64, f64)) -> f64| nanos(all.iter().map(which).fold(0.0, f64::max));
            (largest(|bounds| bounds.0), largest(|bounds| bounds.1))
        });
        Some(OffsetResidual {
            largest: nanos(*largest),
            after: sample.at - first.at,
            bounds,
        })
    }
}

/// Fits a line to offsets; `None` if there are fewer than two.
fn fit<C: Domain>(samples: &[OffsetSample<C>]) -> Option<WindowFit<C>> {
    let [first, _, ..] = samples else { return None };
    let mut points = OffsetFit::new();
    for sample in samples {
        points.push(*sample);
    }
    let line = points.line().ok()?;
    let quality = match line.r_squared() {
        None => FitQuality::Constant,
        Some(_) if samples.len() == 2 => FitQuality::Exact,
        Some(share) if share >= 1.0 => FitQuality::Exact,
        Some(share) => FitQuality::RSquared(share),
    };
    let residuals = samples
        .iter()
        .map(|sample| sample.offset - line.offset_at(sample.at));
    Some(WindowFit {
        began: first.at,
        samples: points.points(),
        drift: line.drift(),
        quality,
        largest_residual: residuals.max_by_key(|residual| residual.abs())?,
    })
}

/// Difference in nanoseconds; rounded only beyond 104 days.
fn difference(later: i64, earlier: i64) -> f64 {
    (i128::from(later) - i128::from(earlier)) as f64
}

/// Rounds to the nearest nanosecond; the cast saturates.
fn nanos(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::Local;

    /// Series of offsets in nanoseconds at times in seconds.
    fn series(points: &[(i64, i64)], half_width: Option<i64>) -> OffsetSeries<Local> {
        let sample = |(at, offset): &(i64, i64)| OffsetSample {
            at: Timestamp::<Local>::from_nanos(1_700_000_000_000_000_000 + at * 1_000_000_000),
            offset: Duration::from_nanos(*offset),
            half_width: half_width.map(Duration::from_nanos),
        };
        OffsetSeries::new(points.iter().map(sample).collect()).unwrap()
    }

    /// R-squared in two passes, by the textbook formula.
    fn r_squared(points: &[(i64, i64)]) -> f64 {
        let n = points.len() as f64;
        let [xs, ys] = [|p: &(i64, i64)| p.0 as f64, |p: &(i64, i64)| p.1 as f64]
            .map(|coordinate| points.iter().map(coordinate).collect::<Vec<f64>>());
        let (mean_x, mean_y) = (xs.iter().sum::<f64>() / n, ys.iter().sum::<f64>() / n);
        let sxy: f64 = xs
            .iter()
            .zip(&ys)
            .map(|(x, y)| (x - mean_x) * (y - mean_y))
            .sum();
        let slope = sxy / xs.iter().map(|x| (x - mean_x).powi(2)).sum::<f64>();
        let residual = |(x, y): (&f64, &f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
        let ss_res: f64 = xs.iter().zip(&ys).map(residual).sum();
        1.0 - ss_res / ys.iter().map(|y| (y - mean_y).powi(2)).sum::<f64>()
    }

    #[test]
    fn fits_agree_with_the_textbook_formulas() {
        let points = [(1, 3), (2, 5), (3, 8), (4, 8)];
        let found = series(&points, None).fit().unwrap();
        // By hand: the slope is 1.8, the squared residuals sum up to 1.8, and the squared distances from the mean of 6 to 18.
        assert!((found.drift - 1.8e-9).abs() < 1e-20);
        let FitQuality::RSquared(share) = found.quality else {
            panic!("{found:?}")
        };
        assert!((share - 0.9).abs() < 1e-12, "{share}");
        // At 3 the line is at 6.9, and the offset is 8; all is rounded to nanoseconds.
        assert_eq!(
            (found.samples, found.largest_residual.abs()),
            (4, Duration::from_nanos(1))
        );

        for points in [
            vec![
                (0, 1_000),
                (1, -40),
                (2, 7),
                (5, 123_456),
                (9, 100_000),
                (10, 3),
            ],
            (0..200).map(|i| (i, i * i)).collect(),
            (0..50)
                .map(|i| (i, 1_000_000_000_000 + i * 7 + i % 3))
                .collect(),
        ] {
            let FitQuality::RSquared(share) = series(&points, None).fit().unwrap().quality else {
                panic!("a share")
            };
            assert!(
                (share - r_squared(&points)).abs() < 1e-9,
                "{share} is not {}",
                r_squared(&points)
            );
        }
    }

    #[test]
    fn exact_and_constant_offsets_have_no_r_squared() {
        let quality = |points: &[(i64, i64)]| series(points, None).fit().map(|fit| fit.quality);
        assert_eq!(quality(&[]), None);
        assert_eq!(quality(&[(0, 5)]), None);
        assert_eq!(
            quality(&[(0, 5), (1, 5), (2, 5)]),
            Some(FitQuality::Constant)
        );
        assert_eq!(quality(&[(0, 5), (1, 9)]), Some(FitQuality::Exact));
        assert_eq!(quality(&[(0, 5), (1, 5)]), Some(FitQuality::Constant));
        assert_eq!(quality(&[(0, 5), (1, 9), (2, 13)]), Some(FitQuality::Exact));
        // The line explains nothing.
        assert_eq!(
            quality(&[(0, 1), (1, 9), (2, 1)]),
            Some(FitQuality::RSquared(0.0))
        );
    }

    #[test]
    fn windows_are_consecutive_and_complete() {
        let points: Vec<(i64, i64)> = (0..=100)
            .map(|i| (i, if i < 40 { 10 * i } else { 400 }))
            .collect();
        let windows = |length, every| {
            series(&points, None).windows(Duration::from_secs(length), Duration::from_secs(every))
        };
        let found = windows(20, 1);
        assert_eq!(
            found
                .iter()
                .map(|window| window.samples)
                .collect::<Vec<_>>(),
            [20; 5]
        );
        assert!((found[1].drift - 10e-9).abs() < 1e-20 && found[1].quality == FitQuality::Exact);
        assert_eq!(
            (found[2].drift, found[2].quality),
            (0.0, FitQuality::Constant)
        );
        // 101 s contain only one complete window of 60 s.
        assert_eq!(windows(60, 1).len(), 1);
        assert_eq!(windows(100, 1).len(), 1);
        assert_eq!(windows(102, 1).len(), 0);
        // An offset that is slightly early completes a window, too.
        let early: Vec<(i64, i64)> = vec![(0, 0), (10, 1), (20, 5), (29, 9)];
        let ten = Duration::from_secs(10);
        assert_eq!(
            series(&early, None)
                .windows(Duration::from_secs(30), ten)
                .len(),
            1
        );
        assert_eq!(
            series(&early, None)
                .windows(Duration::from_secs(40), ten)
                .len(),
            0
        );
        // A window without offsets has no fit.
        let gap: Vec<(i64, i64)> = vec![(0, 0), (1, 1), (2, 3), (9, 1), (10, 2), (11, 4)];
        let found = series(&gap, None).windows(Duration::from_secs(3), Duration::from_secs(1));
        assert_eq!(
            found
                .iter()
                .map(|window| window.samples)
                .collect::<Vec<_>>(),
            [3, 3]
        );
    }

    #[test]
    fn interpolation_residuals_agree_with_hand_calculation() {
        // The line is 0, 25, 50, 75, 100; the residuals are 15, -40 and 5.
        let points = [
            (0, 1_000),
            (25, 1_040),
            (50, 1_010),
            (75, 1_080),
            (100, 1_100),
        ];
        let residual = series(&points, Some(3)).begin_to_end().unwrap();
        assert_eq!(
            (residual.largest, residual.after),
            (Duration::from_nanos(-40), Duration::from_secs(50))
        );
        // Half of the half-widths at the ends, and the half-width of the offset itself.
        assert_eq!(
            residual.bounds,
            Some((Duration::from_nanos(34), Duration::from_nanos(46)))
        );
        assert_eq!(
            [33, 34, 45, 46].map(|latency| residual.exceeds(Duration::from_nanos(latency))),
            [Some(true), None, None, Some(false)]
        );
        let uncertain = series(&points, None).begin_to_end().unwrap();
        assert_eq!(
            (uncertain.largest, uncertain.bounds),
            (Duration::from_nanos(-40), None)
        );
        assert_eq!(uncertain.exceeds(Duration::ZERO), None);
        assert_eq!(series(&points[..2], Some(3)).begin_to_end(), None);
    }

    #[test]
    fn clocks_that_were_set_back_are_refused() {
        let sample = |at| OffsetSample {
            at: Timestamp::<Local>::from_nanos(at),
            offset: Duration::ZERO,
            half_width: None,
        };
        assert_eq!(
            OffsetSeries::new(vec![sample(5), sample(7), sample(7)]),
            Err(MeasureError::ClockSetBack { index: 2 })
        );
        assert!(
            OffsetSeries::new(vec![sample(i64::MIN), sample(i64::MAX)])
                .unwrap()
                .fit()
                .is_some()
        );
    }
}
