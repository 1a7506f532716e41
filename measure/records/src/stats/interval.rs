//! Intervals and confidence levels.

use super::StatsError;
use super::student::student_beyond;

/// An interval; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end, at least the lower one.
    pub high: f64,
}

impl Interval {
    /// Returns true if the interval contains a value.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half of its width.
    pub fn half_width(&self) -> f64 {
        0.5 * (self.high - self.low)
    }
}

/// Confidence level of intervals: above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// The usual level, 95 %.
    pub const USUAL: Self = Self(0.95);

    /// Makes a confidence level of a share.
    ///
    /// # Errors
    /// If it is not above 0 and below 1.
    pub fn new(share: f64) -> Result<Self, StatsError> {
        if share > 0.0 && share < 1.0 {
            Ok(Self(share))
        } else {
            Err(StatsError::Confidence(share))
        }
    }

    /// The level as a share.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// Two-sided critical value of Student's distribution with these degrees of freedom.
    pub fn critical_t(self, freedom: f64) -> f64 {
        student_beyond(self.tail(), freedom)
    }

    pub(crate) fn tail(self) -> f64 {
        0.5 * (1.0 - self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_a_share_short_of_certainty() {
        assert_eq!(Confidence::new(0.95), Ok(Confidence::USUAL));
        for share in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert!(Confidence::new(share).is_err(), "{share}");
        }
    }

    #[test]
    fn an_interval_includes_its_ends() {
        let interval = Interval {
            low: -1.0,
            high: 4.0,
        };
        assert!(interval.contains(-1.0) && interval.contains(4.0));
        assert!(!interval.contains(-1.1) && !interval.contains(4.1));
        assert_eq!(interval.half_width(), 2.5);
    }
}
