//! Errors of statistics.

/// An error of a statistic: the numbers do not allow it.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// A sample has no values.
    #[error("a sample needs at least one value")]
    Empty,
    /// The value at this index is infinite or not a number.
    #[error("value {0} of the sample is not a finite number")]
    NotFinite(usize),
    /// A sample has fewer values than the test needs.
    #[error("the test needs {needed} values, and the sample has {found}")]
    TooFew {
        /// Number of values that the test needs.
        needed: usize,
        /// Number of values in the sample.
        found: usize,
    },
    /// A sample has more values than the test is known for.
    #[error("the test is known for {allowed} values, not for {found}")]
    TooMany {
        /// Largest number of values that the test is known for.
        allowed: usize,
        /// Number of values in the sample.
        found: usize,
    },
    /// All values are the same, so that no difference can be tested.
    #[error("all values are the same")]
    NoSpread,
    /// Values are so far apart, about 1e154, that squares of their differences overflow.
    #[error("the values are too far apart to be squared")]
    TooWide,
    /// Values depend on the ones long before them, so that the error of their mean cannot be estimated.
    #[error(
        "the means of {length} values in a row still depend on each other, with an \
         autocorrelation of {correlation:.2}"
    )]
    Dependent {
        /// Number of adjacent values of each batch.
        length: u64,
        /// Autocorrelation of the means of batches.
        correlation: f64,
    },
    /// A few values decide about the mean, so that its error cannot be estimated.
    #[error("a few extreme values decide about the mean")]
    FewDecide,
    /// There are fewer than two launches: this number.
    #[error("two launches are needed to compare them, and there are {0}")]
    TooFewLaunches(usize),
    /// No launch has two observations, so that the variance within launches is unknown.
    #[error("no launch has two observations")]
    NoRepetition,
    /// This confidence is not above 0 and below 1.
    #[error("a confidence is above 0 and below 1, which {0} is not")]
    Confidence(f64),
}

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
