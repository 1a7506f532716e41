//! Errors of statistics.

use core::fmt;

/// An error of a statistic: the numbers do not allow it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StatsError {
    /// A sample has no values.
    Empty,
    /// The value at this index is infinite or not a number.
    NotFinite(usize),
    /// A sample has fewer values than the test needs.
    TooFew {
        /// Number of values that the test needs.
        needed: usize,
        /// Number of values in the sample.
        found: usize,
    },
    /// A sample has more values than the test is known for.
    TooMany {
        /// Largest number of values that the test is known for.
        allowed: usize,
        /// Number of values in the sample.
        found: usize,
    },
    /// All values are the same, so that no difference can be tested.
    NoSpread,
    /// Values are so far apart, about 1e154, that squares of their differences overflow.
    TooWide,
    /// Values depend on the ones long before them, so that the error of their mean cannot be estimated.
    Dependent {
        /// Number of adjacent values of each batch.
        length: u64,
        /// Autocorrelation of the means of batches.
        correlation: f64,
    },
    /// A few values decide about the mean, so that its error cannot be estimated.
    FewDecide,
    /// There are fewer than two launches: this number.
    TooFewLaunches(usize),
    /// No launch has two observations, so that the variance within launches is unknown.
    NoRepetition,
    /// This confidence is not above 0 and below 1.
    Confidence(f64),
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a sample needs at least one value"),
            Self::NotFinite(index) => {
                write!(f, "value {index} of the sample is not a finite number")
            }
            Self::TooFew { needed, found } => write!(
                f,
                "the test needs {needed} values, and the sample has {found}"
            ),
            Self::TooMany { allowed, found } => {
                write!(f, "the test is known for {allowed} values, not for {found}")
            }
            Self::NoSpread => f.write_str("all values are the same"),
            Self::TooWide => f.write_str("the values are too far apart to be squared"),
            Self::Dependent {
                length,
                correlation,
            } => write!(
                f,
                "the means of {length} values in a row still depend on each other, with an autocorrelation of {correlation:.2}"
            ),
            Self::FewDecide => f.write_str("a few extreme values decide about the mean"),
            Self::TooFewLaunches(count) => write!(
                f,
                "two launches are needed to compare them, and there are {count}"
            ),
            Self::NoRepetition => f.write_str("no launch has two observations"),
            Self::Confidence(share) => {
                write!(
                    f,
                    "a confidence is above 0 and below 1, which {share} is not"
                )
            }
        }
    }
}

impl core::error::Error for StatsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_limit_and_the_value() {
        let (needed, found) = (2, 1);
        assert_eq!(
            StatsError::TooFew { needed, found }.to_string(),
            "the test needs 2 values, and the sample has 1"
        );
        let (allowed, found) = (9, 10);
        assert_eq!(
            StatsError::TooMany { allowed, found }.to_string(),
            "the test is known for 9 values, not for 10"
        );
        assert_eq!(
            StatsError::TooFewLaunches(1).to_string(),
            "two launches are needed to compare them, and there are 1"
        );
        assert_eq!(
            StatsError::Confidence(95.0).to_string(),
            "a confidence is above 0 and below 1, which 95 is not"
        );
    }
}
