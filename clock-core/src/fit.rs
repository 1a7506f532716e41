//! The straight line through noisy points, by least squares, in one pass.
//!
//! The textbook's sums of squares and products lose every digit when points are far from the origin, as timestamps
//! are, or close to a line, as clock offsets are. So points are counted from the first of them, means and centred sums
//! are updated as points come (Welford 1962), and the sum of squared residuals is built from *recursive residuals*: by
//! how much each new point missed the line through the earlier ones (Brown, Durbin and Evans 1975). That is a sum of
//! squares of small numbers instead of a small difference of large ones.

use crate::FitError;

mod offset_line;

pub use offset_line::{OffsetFit, OffsetLine};

/// The least-squares line through points that come one by one.
///
/// ```
/// use downbeat_clock_core::LeastSquares;
///
/// let mut points = LeastSquares::new();
/// for (x, y) in [(1.0, 3.0), (2.0, 5.0), (3.0, 8.0), (4.0, 8.0)] {
///     points.push(x, y)?;
/// }
/// let line = points.line()?;
/// assert_eq!(line.slope(), 1.8);
/// assert_eq!(line.intercept(), 1.5);
/// assert_eq!(line.at(5.0), 10.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Precision
/// Of `n` points the slope is good to about `n * 1e-16` of the ratio of the spreads of y and x, the residual standard
/// deviation to about `n * 1e-16` of the spread of y, wherever the points lie. In practice rounding errors cancel, and
/// it is rather the square root of `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LeastSquares {
    points: u64,
    /// The sum of their weights.
    weight: f64,
    /// The first point. What follows is counted from there, so that it does not matter how far out the points are.
    origin: (f64, f64),
    mean: (f64, f64),
    sxx: f64,
    sxy: f64,
    syy: f64,
    residual_squares: f64,
}

impl LeastSquares {
    /// No points yet.
    pub const fn new() -> Self {
        let (origin, mean) = ((0.0, 0.0), (0.0, 0.0));
        Self {
            points: 0,
            weight: 0.0,
            origin,
            mean,
            sxx: 0.0,
            sxy: 0.0,
            syy: 0.0,
            residual_squares: 0.0,
        }
    }

    /// Takes a point, of weight 1.
    ///
    /// # Errors
    /// When a coordinate is not finite, or the point is about 1e154 from the others. It is then left out.
    pub fn push(&mut self, x: f64, y: f64) -> Result<(), FitError> {
        self.push_weighted(x, y, 1.0)
    }

    /// Takes a point that weighs as much as so many others at the same place: one over the square of how uncertain it
    /// is, in any unit. Only ratios of weights matter.
    ///
    /// # Errors
    /// As [`push`](Self::push), and when the weight is not a positive number.
    pub fn push_weighted(&mut self, x: f64, y: f64, weight: f64) -> Result<(), FitError> {
        if !(x.is_finite() && y.is_finite()) {
            return Err(FitError::NotFinite);
        }
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(FitError::InvalidWeight);
        }
        let next = self.with(x, y, weight);
        if ![next.sxx, next.sxy, next.syy, next.residual_squares]
            .into_iter()
            .all(f64::is_finite)
        {
            return Err(FitError::TooFar);
        }
        *self = next;
        Ok(())
    }

    /// These points and one more.
    fn with(self, x: f64, y: f64, weight: f64) -> Self {
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
        let missed = match (self.slope(), next.slope()) {
            (Some(slope), _) => {
                let residual = dy - slope * dx;
                residual * residual / (1.0 / weight + 1.0 / before + dx * dx / self.sxx)
            }
            // The first point at another x: the line goes through it and through the mean of the others.
            (None, Some(_)) => 0.0,
            // All at one x still: the best line goes through their mean.
            (None, None) => dy * dy * spread,
        };
        Self {
            residual_squares: self.residual_squares + missed,
            ..next
        }
    }

    /// `None` unless there are two different x. A spread of less than 1e-154 is none: its square has no digits.
    fn slope(&self) -> Option<f64> {
        (self.sxx >= f64::MIN_POSITIVE).then(|| self.sxy / self.sxx)
    }

    /// How many points were taken.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The line.
    ///
    /// # Errors
    /// When there are not at least two points with different x.
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

/// A line with the figures that say how well it fits.
///
/// Standard errors need three points at least, since two are always on a line; they assume that the residuals are
/// independent of each other and equally large everywhere. Clocks that wander break the first assumption, and then the
/// errors are too small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedLine {
    points: LeastSquares,
    slope: f64,
}

impl FittedLine {
    /// How many points it was fitted to.
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
    pub fn at(&self, x: f64) -> f64 {
        let LeastSquares { origin, mean, .. } = self.points;
        // Large numbers last: the line's own digits are in the small ones.
        origin.1 + (mean.1 + self.slope * self.distance(x))
    }

    /// The value at 0. Far from the points it says little; [`at`](Self::at) one of them says more.
    pub fn intercept(&self) -> f64 {
        self.at(0.0)
    }

    /// The share of the variance of y that the line explains, from 0 to 1. `None` when all y are equal: then there is
    /// nothing to explain.
    pub fn r_squared(&self) -> Option<f64> {
        let LeastSquares {
            syy,
            residual_squares,
            ..
        } = self.points;
        // Where y does not depend on x, rounding can make the residuals larger than what they are residuals of.
        (syy > 0.0).then(|| (1.0 - residual_squares / syy).max(0.0))
    }

    /// The standard deviation of the points from the line, with `n - 2` degrees of freedom; of weighted points, that of
    /// one with the mean weight.
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

    /// The standard error of the line at `x`: of the mean of ever so many new observations there.
    pub fn error_at(&self, x: f64) -> Option<f64> {
        Some(self.residual_deviation()? * self.doubt(x))
    }

    /// The standard error of one new observation at `x`: that of the line, and the scatter around it.
    pub fn prediction_error_at(&self, x: f64) -> Option<f64> {
        Some(self.residual_deviation()? * libm::hypot(1.0, self.doubt(x)))
    }

    /// The standard error of the line at `x`, as a multiple of the residual deviation: the square root of
    /// `1 / n + (x - mean)^2 / sxx`.
    fn doubt(&self, x: f64) -> f64 {
        let spreads = self.distance(x) / self.spread();
        libm::hypot(1.0 / libm::sqrt(self.points.points as f64), spreads)
    }

    /// The square root of the sum of the squares of the points' distances from the mean, by their weights.
    fn spread(&self) -> f64 {
        libm::sqrt(self.points.sxx / self.mean_weight())
    }

    /// How far `x` is from the mean.
    fn distance(&self, x: f64) -> f64 {
        x - self.points.origin.0 - self.points.mean.0
    }
}
