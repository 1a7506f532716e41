//! An upper limit of the error of a clock, which grows with its age.

use crate::{Domain, Duration, Timestamp};

/// Upper limit of the error of a clock that shows the time `D`: exact at one time, wider before and after it.
///
/// ```
/// use downbeat_clock_core::{Duration, ErrorBound, Global, Timestamp};
///
/// let bound = ErrorBound::<Global> {
///     at: Timestamp::from_nanos(1_000),
///     half_width: Duration::from_nanos(300),
///     drift: 1e-6,
/// };
/// let second = bound.at + Duration::from_secs(1);
/// assert_eq!(bound.at_time(second), Duration::from_nanos(1_300));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(bound = "")
)]
pub struct ErrorBound<D: Domain> {
    /// Time at which the error is at most `half_width`.
    pub at: Timestamp<D>,
    /// Largest error at that time.
    pub half_width: Duration,
    /// Largest error of the rate: `1e-6` is one part per million.
    pub drift: f64,
}

impl<D: Domain> ErrorBound<D> {
    /// The bound of a clock of which nothing is known.
    pub const UNKNOWN: Self = Self {
        at: Timestamp::ORIGIN,
        half_width: Duration::MAX,
        drift: 0.0,
    };

    /// Largest error at a time, rounded up; saturates.
    pub fn at_time(&self, time: Timestamp<D>) -> Duration {
        self.half_width + drifted(self.drift, time - self.at)
    }
}

/// Upper limit of the deviation that a drift causes over a time of either sign, in whole nanoseconds; saturates.
pub(crate) fn drifted(drift: f64, over: Duration) -> Duration {
    // The cast saturates, and takes NaN, which only an infinite drift over no time gives, for zero.
    Duration::from_nanos(libm::ceil(drift * over.abs().as_nanos() as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Global;

    #[test]
    fn a_bound_grows_on_both_sides_and_saturates() {
        let bound = ErrorBound::<Global> {
            at: Timestamp::from_nanos(-5),
            half_width: Duration::from_nanos(7),
            drift: 0.5,
        };
        let at = |nanos| bound.at_time(Timestamp::from_nanos(nanos)).as_nanos();
        assert_eq!([-8, -5, -4, 5].map(at), [9, 7, 8, 12]);
        let wide = ErrorBound {
            half_width: Duration::MAX,
            ..bound
        };
        assert_eq!(wide.at_time(Timestamp::from_nanos(i64::MAX)), Duration::MAX);
    }
}
