//! Linear least squares in one pass.
//!
//! The textbook sums of squares and products lose all digits if points are far from the origin, as timestamps are, or
//! close to a line, as clock offsets are. Therefore points are taken relative to the first one, means and centred sums
//! are updated with each point (Welford 1962), and the sum of squared residuals is built from *recursive residuals*: the
//! distance of each new point from the line through the earlier ones (Brown, Durbin and Evans 1975). This is a sum of
//! squares of small numbers instead of a small difference of large ones.

use crate::FitError;

mod envelope;
mod offset_line;

pub use envelope::{Envelope, EnvelopeLine, RateLimits, Reading};
pub use offset_line::{OffsetFit, OffsetLine};

/// A least-squares fit of a line to points that are added one by one.
///
/// ```
/// use downbeat_clock_core::fit::LeastSquares;
///
/// let mut points = LeastSquares::new();
/// for (x, y) in [(1.0, 3.0), (2.0, 5.0), (3.0, 8.0), (4.0, 8.0)] {
///     points.push(x, y)?;
/// }
/// let line = points.line()?;
/// assert_eq!(line.slope(), 1.8);
/// assert_eq!(line.intercept(), 1.5);
/// assert_eq!(line.value_at(5.0), 10.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Precision
/// For `n` points, the error of the slope is about `n * 1e-16` of the ratio of the spreads of y and x, that of the
/// residual standard deviation about `n * 1e-16` of the spread of y, wherever the points lie. In practice rounding errors
/// cancel, and the factor is closer to the square root of `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LeastSquares {
    points: u64,
    /// Sum of the weights.
    weight: f64,
    /// The first point. The sums are relative to it, so that the distance of the points from zero does not matter.
    origin: (f64, f64),
    mean: (f64, f64),
    sxx: f64,
    sxy: f64,
    syy: f64,
    residual_squares: f64,
}

impl LeastSquares {
    /// Creates a fit without points.
    pub const fn new() -> Self {
        Self {
            points: 0,
            weight: 0.0,
            origin: (0.0, 0.0),
            mean: (0.0, 0.0),
            sxx: 0.0,
            sxy: 0.0,
            syy: 0.0,
            residual_squares: 0.0,
        }
    }

    /// Adds a point with weight 1.
    ///
    /// # Errors
    /// If a coordinate is not finite, or the point is about 1e154 from the others. The point is then not added.
    pub fn push(&mut self, x: f64, y: f64) -> Result<(), FitError> {
        self.push_weighted(x, y, 1.0)
    }

    /// Adds a weighted point. A point with weight 2 counts like two points at the same place; the usual weight is one
    /// over the square of the uncertainty. Only ratios of weights matter.
    ///
    /// # Errors
    /// The same as [`push`](Self::push), and if the weight is not a positive number.
    pub fn push_weighted(&mut self, x: f64, y: f64, weight: f64) -> Result<(), FitError> {
        if !(x.is_finite() && y.is_finite()) {
            return Err(FitError::NotFinite);
        }
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(FitError::InvalidWeight);
        }
        let next = self.with_point(x, y, weight);
        if ![next.sxx, next.sxy, next.syy, next.residual_squares]
            .into_iter()
            .all(f64::is_finite)
        {
            return Err(FitError::TooFar);
        }
        *self = next;
        Ok(())
    }

    /// The fit with one more point, unchecked.
    fn with_point(self, x: f64, y: f64, weight: f64) -> Self {
        if self.points == 0 {
            return Self {
                points: 1,
                weight,
                origin: (x, y),
                ..self
            };
        }
        let before = self.weight;
        let whole = before + weight;
        let (share, spread) = (weight / whole, weight * (before / whole));
        let dx = x - self.origin.0 - self.mean.0;
        let dy = y - self.origin.1 - self.mean.1;
        let next = Self {
            points: self.points + 1,
            weight: whole,
            mean: (self.mean.0 + dx * share, self.mean.1 + dy * share),
            sxx: self.sxx + dx * dx * spread,
            sxy: self.sxy + dx * dy * spread,
            syy: self.syy + dy * dy * spread,
            ..self
        };
        let residual_square = match (self.slope(), next.slope()) {
            (Some(slope), _) => {
                let residual = dy - slope * dx;
                residual * residual / (1.0 / weight + 1.0 / before + dx * dx / self.sxx)
            }
            // The first point with a different x: the line goes through it and through the mean of the others.
            (None, Some(_)) => 0.0,
            // All points still have the same x: the best line goes through their mean.
            (None, None) => dy * dy * spread,
        };
        Self {
            residual_squares: self.residual_squares + residual_square,
            ..next
        }
    }

    /// The slope; `None` unless there are two different x. A spread below 1e-154 counts as zero: its square underflows.
    fn slope(&self) -> Option<f64> {
        (self.sxx >= f64::MIN_POSITIVE).then(|| self.sxy / self.sxx)
    }

    /// Number of points.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Computes the line.
    ///
    /// # Errors
    /// If there are no two points with different x.
    pub fn line(&self) -> Result<FittedLine, FitError> {
        match (self.points, self.slope()) {
            (0, _) => Err(FitError::NoPoints),
            (_, None) => Err(FitError::OneX),
            (_, Some(slope)) => Ok(FittedLine {
                points: *self,
                slope,
            }),
        }
    }
}

/// A fitted line with statistics of the fit.
///
/// Standard errors need at least three points, since two are always on a line. They assume that the residuals are
/// independent and have the same variance everywhere. Clocks whose drift wanders violate the first assumption; the errors
/// are then too small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedLine {
    points: LeastSquares,
    slope: f64,
}

impl FittedLine {
    /// Number of points of the fit.
    pub fn points(&self) -> u64 {
        self.points.points
    }

    /// The slope.
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// The mean of the points, which is on the line.
    pub fn mean(&self) -> (f64, f64) {
        let LeastSquares { origin, mean, .. } = self.points;
        (origin.0 + mean.0, origin.1 + mean.1)
    }

    /// The value at `x`.
    pub fn value_at(&self, x: f64) -> f64 {
        let LeastSquares { origin, mean, .. } = self.points;
        // The large number is added last, to keep the digits of the small ones.
        origin.1 + (mean.1 + self.slope * self.distance(x))
    }

    /// The value at 0. It is inaccurate if 0 is far from the points; use [`value_at`](Self::value_at) near them.
    pub fn intercept(&self) -> f64 {
        self.value_at(0.0)
    }

    /// Fraction of the variance of y explained by the line, from 0 to 1. `None` if all y are equal, that is, if the
    /// variance is zero.
    pub fn r_squared(&self) -> Option<f64> {
        let LeastSquares {
            syy,
            residual_squares,
            ..
        } = self.points;
        // If y does not depend on x, rounding can make the residuals larger than the total.
        (syy > 0.0).then(|| (1.0 - residual_squares / syy).max(0.0))
    }

    /// Standard deviation of the points from the line, with `n - 2` degrees of freedom; for weighted points, that of a
    /// point with the mean weight.
    pub fn residual_deviation(&self) -> Option<f64> {
        let freedom = self
            .points
            .points
            .checked_sub(2)
            .filter(|freedom| *freedom > 0)?;
        Some(libm::sqrt(
            self.points.residual_squares / self.mean_weight() / freedom as f64,
        ))
    }

    fn mean_weight(&self) -> f64 {
        self.points.weight / self.points.points as f64
    }

    /// The standard error of the slope.
    pub fn slope_error(&self) -> Option<f64> {
        Some(self.residual_deviation()? / self.spread())
    }

    /// The standard error of the intercept.
    pub fn intercept_error(&self) -> Option<f64> {
        self.error_at(0.0)
    }

    /// The standard error of the line at `x`.
    pub fn error_at(&self, x: f64) -> Option<f64> {
        Some(self.residual_deviation()? * self.relative_error(x))
    }

    /// The standard error of one new observation at `x`: the error of the line combined with the residual deviation.
    pub fn prediction_error_at(&self, x: f64) -> Option<f64> {
        Some(self.residual_deviation()? * libm::hypot(1.0, self.relative_error(x)))
    }

    /// The standard error of the line at `x`, as a multiple of the residual deviation: the square root of
    /// `1 / n + (x - mean)^2 / sxx`.
    fn relative_error(&self, x: f64) -> f64 {
        let spreads = self.distance(x) / self.spread();
        libm::hypot(1.0 / libm::sqrt(self.points.points as f64), spreads)
    }

    /// Square root of the weighted sum of squared distances of x from the mean.
    fn spread(&self) -> f64 {
        libm::sqrt(self.points.sxx / self.mean_weight())
    }

    /// `x` minus the mean.
    fn distance(&self, x: f64) -> f64 {
        x - self.points.origin.0 - self.points.mean.0
    }
}
