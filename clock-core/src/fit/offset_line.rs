//! A client's offset as a linear function of its own time: the result of most synchronization algorithms.

use super::{FittedLine, LeastSquares};
use crate::offset::OffsetSample;
use crate::{ClockModel, Domain, Duration, FitError, ModelError, TickRate, Timestamp};

/// Fits a line to offsets.
///
/// Differences from the first sample are computed in whole nanoseconds, so the precision does not depend on the distance
/// of the clocks from their origins or from each other.
///
/// ```
/// use downbeat_clock_core::fit::OffsetFit;
/// use downbeat_clock_core::offset::OffsetSample;
/// use downbeat_clock_core::{Duration, Global, Local, Timestamp};
///
/// // 1 ms ahead and gaining 2 us per second.
/// let mut fit = OffsetFit::<Local>::new();
/// for second in 0..5 {
///     fit.push(OffsetSample {
///         at: Timestamp::ORIGIN + Duration::from_secs(second),
///         offset: Duration::from_millis(1) + Duration::from_micros(2 * second),
///         half_width: None,
///     });
/// }
/// let line = fit.line()?;
/// assert!((line.drift() - 2e-6).abs() < 1e-15);
///
/// let minute = Timestamp::ORIGIN + Duration::from_secs(60);
/// assert_eq!(line.offset_at(minute), Duration::from_micros(1_120));
///
/// let model = line.model::<Global>()?;
/// assert_eq!(model.apply(minute), Timestamp::from_nanos(60_000_000_000 - 1_120_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffsetFit<C: Domain> {
    first: Option<OffsetSample<C>>,
    points: LeastSquares,
}

impl<C: Domain> OffsetFit<C> {
    /// Creates a fit without samples.
    pub const fn new() -> Self {
        Self {
            first: None,
            points: LeastSquares::new(),
        }
    }

    /// Adds a sample with weight 1, whatever its half width.
    pub fn push(&mut self, sample: OffsetSample<C>) {
        self.push_with_weight(sample, 1.0);
    }

    /// Adds a sample weighted by its [`certainty`](OffsetSample::certainty).
    pub fn push_by_certainty(&mut self, sample: OffsetSample<C>) {
        self.push_with_weight(sample, sample.certainty());
    }

    fn push_with_weight(&mut self, sample: OffsetSample<C>, weight: f64) {
        let first = *self.first.get_or_insert(sample);
        // Finite, and too small to overflow when squared: `LeastSquares::push` would accept it.
        self.points = self.points.with_point(
            since(sample.at, first.at),
            offset_difference(sample.offset, first.offset),
            weight,
        );
    }

    /// Number of samples.
    pub fn points(&self) -> u64 {
        self.points.points()
    }

    /// Computes the line; a single sample gives a line without drift.
    ///
    /// # Errors
    /// If there are no samples, or several samples all at the same time.
    pub fn line(&self) -> Result<OffsetLine<C>, FitError> {
        let first = self.first.ok_or(FitError::NoPoints)?;
        let fitted = match self.points.points {
            1 => FittedLine {
                points: self.points,
                slope: 0.0,
            },
            _ => self.points.line()?,
        };
        // The mean is fractional: anchor the line at the nearest whole nanosecond.
        let (mean_x, mean_y) = fitted.mean();
        let anchor = Timestamp::from_nanos(add_rounded(first.at.as_nanos(), mean_x));
        let there = mean_y + fitted.slope() * (since(anchor, first.at) - mean_x);
        let offset = Duration::from_nanos(add_rounded(first.offset.as_nanos(), there));
        let fraction = there - offset_difference(offset, first.offset);
        Ok(OffsetLine {
            anchor,
            offset,
            fraction,
            fitted,
            began: first.at,
            shifted: false,
        })
    }
}

impl<C: Domain> Default for OffsetFit<C> {
    fn default() -> Self {
        Self::new()
    }
}

/// An offset that changes at a constant rate.
///
/// Times and offsets are rounded to the nearest nanosecond. Statistics are in nanoseconds, and `None` if there are too
/// few samples, as in a [`FittedLine`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffsetLine<C: Domain> {
    /// Time of the point that the line is computed from.
    anchor: Timestamp<C>,
    /// Offset at the anchor, rounded to whole nanoseconds.
    offset: Duration,
    /// Offset at the anchor minus the rounded one, in nanoseconds.
    fraction: f64,
    /// The fit, in nanoseconds relative to the first sample.
    fitted: FittedLine,
    /// Time of the first sample.
    began: Timestamp<C>,
    /// True if [`through`](Self::through) moved the line away from the fit.
    shifted: bool,
}

impl<C: Domain> OffsetLine<C> {
    /// Nanoseconds by which the offset grows per nanosecond of the client: `1e-6` is one part per million.
    pub fn drift(&self) -> f64 {
        self.fitted.slope()
    }

    /// The offset at a time of the client; saturates.
    ///
    /// At [`Timestamp::ORIGIN`] it is the intercept.
    pub fn offset_at(&self, at: Timestamp<C>) -> Duration {
        let change = self.fraction + self.drift() * since(at, self.anchor);
        Duration::from_nanos(add_rounded(self.offset.as_nanos(), change))
    }

    /// The line with the same drift through a newer sample: recomputes the intercept.
    pub fn through(&self, sample: OffsetSample<C>) -> Self {
        Self {
            anchor: sample.at,
            offset: sample.offset,
            fraction: 0.0,
            shifted: true,
            ..*self
        }
    }

    /// The map from the client's clock to the reference's, which is the client's minus the offset.
    ///
    /// # Errors
    /// If the clocks are more than 146 years apart, or the drift is 1 or more: the reference would not advance.
    pub fn model<R: Domain>(&self) -> Result<ClockModel<C, R>, ModelError> {
        // A saturated image would be wrong.
        let image = self
            .anchor
            .as_nanos()
            .checked_sub(self.offset.as_nanos())
            .ok_or(ModelError::TooFarApart)?;
        let rate = TickRate::NANOSECOND.with_drift(-self.drift())?;
        ClockModel::through(self.anchor, Timestamp::from_nanos(image), rate)
    }

    /// Fraction of the variance of the offsets explained by drift; see [`FittedLine::r_squared`].
    pub fn r_squared(&self) -> Option<f64> {
        self.fitted.r_squared()
    }

    /// Standard deviation of the samples from the fitted line.
    pub fn residual_deviation(&self) -> Option<f64> {
        self.fitted.residual_deviation()
    }

    /// The standard error of the drift.
    pub fn drift_error(&self) -> Option<f64> {
        self.fitted.slope_error()
    }

    /// The largest error of the drift if the errors of the samples have at most this (weighted) root mean square;
    /// infinite for a single sample.
    pub fn drift_bound(&self, error: f64) -> f64 {
        error * libm::sqrt(self.fitted.points() as f64) / self.fitted.spread()
    }

    /// The standard error of the offset at a time of the client.
    ///
    /// `None` after [`through`](Self::through): the error of a single sample is not known.
    pub fn error_at(&self, at: Timestamp<C>) -> Option<f64> {
        if self.shifted {
            None
        } else {
            self.fitted.error_at(since(at, self.began))
        }
    }

    /// The standard error of a new sample at a time of the client; `None` if [`error_at`](Self::error_at) is.
    pub fn prediction_error_at(&self, at: Timestamp<C>) -> Option<f64> {
        if self.shifted {
            None
        } else {
            self.fitted.prediction_error_at(since(at, self.began))
        }
    }
}

/// Nanoseconds from one time to another: an exact difference, rounded only beyond 104 days.
fn since<C: Domain>(later: Timestamp<C>, earlier: Timestamp<C>) -> f64 {
    (i128::from(later.as_nanos()) - i128::from(earlier.as_nanos())) as f64
}

/// Nanoseconds from one offset to another: an exact difference, rounded only beyond 104 days.
fn offset_difference(offset: Duration, reference: Duration) -> f64 {
    (i128::from(offset.as_nanos()) - i128::from(reference.as_nanos())) as f64
}

/// `from` plus a number of nanoseconds, rounded to nearest; saturates.
fn add_rounded(from: i64, by: f64) -> i64 {
    i128::from(from)
        .saturating_add(libm::round(by) as i128)
        .clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
