//! Limits of the error of a clock, which grow with its age.

use crate::{Domain, Duration, Timestamp};

/// Limits of the error of a clock that shows the time `D`: exact at one time, wider before and after it.
///
/// ```
/// use downbeat_clock_core::{Duration, ErrorBound, Global, Timestamp};
///
/// let bound = ErrorBound::<Global> {
///     at: Timestamp::from_nanos(1_000),
///     ahead: Duration::from_nanos(300),
///     behind: Duration::from_nanos(-20),
///     drift: 1e-6,
/// };
/// let second = bound.at + Duration::from_secs(1);
/// assert_eq!(bound.at_time(second), Duration::from_nanos(1_300));
/// // The clock was 20 to 300 ns ahead.
/// let [earliest, latest] = bound.around(second);
/// assert_eq!([earliest - second, latest - second], [-1_300, 980].map(Duration::from_nanos));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(bound = "")
)]
pub struct ErrorBound<D: Domain> {
    /// Time for which the limits hold.
    pub at: Timestamp<D>,
    /// Largest time by which the clock is ahead then; negative if it is certainly behind.
    pub ahead: Duration,
    /// Largest time by which the clock is behind then; negative if it is certainly ahead.
    pub behind: Duration,
    /// Largest error of the rate: `1e-6` is one part per million.
    pub drift: f64,
}

impl<D: Domain> ErrorBound<D> {
    /// The bound of a clock of which nothing is known.
    pub const UNKNOWN: Self = Self {
        at: Timestamp::ORIGIN,
        ahead: Duration::MAX,
        behind: Duration::MAX,
        drift: 0.0,
    };

    /// Creates the bound of a clock that can be ahead and behind by the same.
    pub const fn symmetric(at: Timestamp<D>, half_width: Duration, drift: f64) -> Self {
        Self {
            at,
            ahead: half_width,
            behind: half_width,
            drift,
        }
    }

    /// Largest error at the time for which the limits hold.
    pub fn half_width(&self) -> Duration {
        self.ahead.max(self.behind)
    }

    /// Largest error at a time, rounded up; saturates.
    pub fn at_time(&self, time: Timestamp<D>) -> Duration {
        self.half_width() + drifted(self.drift, time - self.at)
    }

    /// Returns the same bound for another time of the clock.
    #[must_use]
    pub fn moved_to(&self, time: Timestamp<D>) -> Self {
        let by = drifted(self.drift, time - self.at);
        Self {
            at: time,
            ahead: self.ahead + by,
            behind: self.behind + by,
            ..*self
        }
    }

    /// Returns the bound of a clock that is ahead of this one by `low` to `high` at the time for which the limits hold.
    #[must_use]
    pub fn ahead_by(&self, [low, high]: [Duration; 2]) -> Self {
        Self {
            ahead: self.ahead + high,
            behind: self.behind - low,
            ..*self
        }
    }

    /// Returns true if the clock can show `shown` when the reference shows `reference`.
    pub fn allows(&self, shown: Timestamp<D>, reference: Timestamp<D>) -> bool {
        let [earliest, latest] = self.around(shown);
        (earliest..=latest).contains(&reference)
    }

    /// Earliest and latest time of the reference when the clock shows this time, rounded outward; they saturate.
    pub fn around(&self, shown: Timestamp<D>) -> [Timestamp<D>; 2] {
        let moved = self.moved_to(shown);
        [shown - moved.ahead, shown + moved.behind]
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
            ahead: Duration::from_nanos(3),
            ..ErrorBound::symmetric(Timestamp::from_nanos(-5), Duration::from_nanos(7), 0.5)
        };
        let at = |nanos| bound.at_time(Timestamp::from_nanos(nanos)).as_nanos();
        assert_eq!([-8, -5, -4, 5].map(at), [9, 7, 8, 12]);
        let around = bound.around(Timestamp::from_nanos(5));
        assert_eq!(around.map(Timestamp::as_nanos), [5 - 3 - 5, 5 + 7 + 5]);
        let last = Timestamp::from_nanos(i64::MAX);
        assert_eq!(ErrorBound::<Global>::UNKNOWN.at_time(last), Duration::MAX);
        let [earliest, latest] = ErrorBound::<Global>::UNKNOWN.around(Timestamp::ORIGIN);
        assert_eq!(
            [earliest.as_nanos(), latest.as_nanos()],
            [-i64::MAX, i64::MAX]
        );
    }
}
