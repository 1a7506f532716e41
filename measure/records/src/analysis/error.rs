//! Why launches cannot be analysed.

use core::fmt;

use crate::GroupKey;

/// Why launches cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnalysisError {
    /// There is none.
    NoLaunches,
    /// A launch was made under other conditions than the first.
    MixedFactors {
        /// Its name.
        launch: String,
        /// The first factor that differs.
        factor: String,
    },
    /// A launch has the same group twice.
    Twice {
        /// Its name.
        launch: String,
        /// The group.
        key: GroupKey,
    },
    /// A time is not a number, or longer than any clock can tell.
    NoTime {
        /// The name of the launch.
        launch: String,
        /// The group.
        key: GroupKey,
    },
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLaunches => f.write_str("there is no launch"),
            Self::MixedFactors { launch, factor } => {
                write!(
                    f,
                    "{launch}: the factor \"{factor}\" is not that of the first launch"
                )
            }
            Self::Twice { launch, key } => write!(f, "{launch}: {key}: measured twice"),
            Self::NoTime { launch, key } => {
                write!(
                    f,
                    "{launch}: {key}: a time is not a number, or longer than 292 years"
                )
            }
        }
    }
}

impl core::error::Error for AnalysisError {}
