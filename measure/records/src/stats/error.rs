//! Why a test cannot be made of samples.

use core::fmt;

/// Why a test cannot be made of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TestError {
    /// A sample has fewer values than the test needs.
    TooFew {
        /// How many it needs.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// A sample has more values than the test is known for.
    TooMany {
        /// How many it may have.
        allowed: usize,
        /// How many there are.
        found: usize,
    },
    /// All values are the same, so that there is nothing to measure a difference by.
    NoSpread,
    /// Values are so far apart, about 1e154, that squares of their differences overflow.
    TooWide,
}

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { needed, found } => write!(
                f,
                "the test needs {needed} values, and the sample has {found}"
            ),
            Self::TooMany { allowed, found } => {
                write!(f, "the test is known for {allowed} values, not for {found}")
            }
            Self::NoSpread => f.write_str("all values are the same"),
            Self::TooWide => f.write_str("the values are too far apart to be squared"),
        }
    }
}

impl core::error::Error for TestError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong() {
        let told = |error: TestError| error.to_string();
        assert_eq!(
            told(TestError::TooFew {
                needed: 2,
                found: 1
            }),
            "the test needs 2 values, and the sample has 1"
        );
        assert_eq!(
            told(TestError::TooMany {
                allowed: 9,
                found: 10
            }),
            "the test is known for 9 values, not for 10"
        );
        assert_eq!(told(TestError::NoSpread), "all values are the same");
        assert_eq!(
            told(TestError::TooWide),
            "the values are too far apart to be squared"
        );
    }
}
