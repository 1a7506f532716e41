//! Alternative hypothesis of the comparisons of two experiments.

use clap::ValueEnum;
use downbeat_records::stats::PValues;

/// Alternative hypothesis of the tests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Alternative {
    /// The experiments differ
    TwoSided,
    /// The second one takes less time: it is faster
    Less,
    /// The second one takes more time: it is slower
    Greater,
}

impl Alternative {
    pub(crate) fn p_value(self, p: &PValues) -> f64 {
        match self {
            Self::TwoSided => p.two_sided,
            Self::Less => p.less,
            Self::Greater => p.greater,
        }
    }

    /// Returns what the alternative says of a second experiment beside a first one.
    pub(crate) fn statement(self, first: &str, second: &str) -> String {
        match self {
            Self::TwoSided => format!("{first} and {second} differ"),
            Self::Less => format!("{second} takes less time"),
            Self::Greater => format!("{second} takes more time"),
        }
    }
}
