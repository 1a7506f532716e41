//! Why observations cannot be processed.

use core::fmt;

use downbeat_records::stats::StatsError;

/// Why observations cannot be processed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ProcessingError {
    /// It needs the time of every single call, and only means of several are measured.
    NeedsSingleCalls {
        /// What a mean does not tell.
        what: &'static str,
    },
    /// It compares stamps of different ranks, and their clocks differ.
    NeedsGlobalClock,
    /// MPIBench's factor for outliers is out of its range.
    Factor(f64),
    /// There is no such rank.
    NoSuchRoot {
        /// The rank that is to be root.
        root: usize,
        /// How many ranks there are.
        ranks: usize,
    },
    /// No observation counts.
    NothingValid {
        /// How many began late.
        late: usize,
        /// How many took too long.
        long: usize,
    },
    /// A time is infinite or not a number.
    NotFinite,
    /// There is no processing of this name.
    NoSuchName(String),
    /// What stands behind the name is nothing that it takes.
    Option(String),
}

impl fmt::Display for ProcessingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsSingleCalls { what } => {
                write!(f, "this processing needs {what}, and the scheme measures only means of many calls")
            }
            Self::NeedsGlobalClock => f.write_str(
                "this processing compares the end of one rank with the start of another, and the scheme has no clock \
                 that all ranks share",
            ),
            Self::Factor(a) => write!(f, "the factor for outliers is a number of at least 1, which {a} is not"),
            Self::NoSuchRoot { root, ranks } => write!(f, "rank {root} cannot be root among {ranks} ranks"),
            Self::NothingValid { late: 0, long: 0 } => f.write_str("there are no observations"),
            Self::NothingValid { late, long } => {
                write!(f, "none of {} observations is valid: {late} began late, {long} took too long", late + long)
            }
            Self::NotFinite => f.write_str("a time is not a finite number"),
            Self::NoSuchName(name) => write!(
                f,
                "there is no processing \"{name}\"; there are median, skampi (or ps1), extremes (ps2), osu (ps3), global \
                 (ps4), mpibench (ps5), nbcbench (ps6), rank-averages (ps7) and root-best (ps8)"
            ),
            Self::Option(text) => write!(f, "\"{text}\" is not what a processing takes behind its name"),
        }
    }
}

impl core::error::Error for ProcessingError {}

impl From<StatsError> for ProcessingError {
    fn from(why: StatsError) -> Self {
        match why {
            StatsError::Empty => Self::NothingValid { late: 0, long: 0 },
            // A later release may name other reasons; each is a value that cannot be ordered.
            _ => Self::NotFinite,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong() {
        let told = |error: ProcessingError| error.to_string();
        assert_eq!(
            told(ProcessingError::NothingValid {
                late: 300,
                long: 200
            }),
            "none of 500 observations is valid: 300 began late, 200 took too long"
        );
        assert_eq!(
            told(ProcessingError::NothingValid { late: 0, long: 0 }),
            "there are no observations"
        );
        assert_eq!(
            told(ProcessingError::NoSuchRoot { root: 4, ranks: 4 }),
            "rank 4 cannot be root among 4 ranks"
        );
        assert_eq!(
            told(ProcessingError::NeedsSingleCalls {
                what: "the slowest rank of each call"
            }),
            "this processing needs the slowest rank of each call, and the scheme measures only means of many calls"
        );
        assert!(
            told(ProcessingError::NeedsGlobalClock).ends_with("has no clock that all ranks share")
        );
        assert!(told(ProcessingError::NoSuchName("best".into())).contains("\"best\""));
        let factor = told(ProcessingError::Factor(0.5));
        assert_eq!(
            factor,
            "the factor for outliers is a number of at least 1, which 0.5 is not"
        );
    }
}
