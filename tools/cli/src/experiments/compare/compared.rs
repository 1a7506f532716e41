//! Two experiments and their comparison.

use std::path::PathBuf;

use clap::ValueEnum;
use downbeat_records::analysis::{Analysis, AnalysisSettings, ExperimentComparison};
use downbeat_records::stats::{PValues, RankMethod};

use super::by_state::BlockedComparison;

/// Level of the normality test below which the t-test of means counts as doubtful.
pub(super) const NORMALITY: f64 = 0.05;

/// Alternative hypothesis of the tests.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Alternative {
    TwoSided,
    Less,
    Greater,
}

impl Alternative {
    pub(super) fn p_value(self, p: &PValues) -> f64 {
        match self {
            Self::TwoSided => p.two_sided,
            Self::Less => p.less,
            Self::Greater => p.greater,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TwoSided => "two-sided",
            Self::Less => "less",
            Self::Greater => "greater",
        }
    }

    pub(super) const fn statement(self) -> &'static str {
        match self {
            Self::TwoSided => "A and B differ",
            Self::Less => "B takes less time",
            Self::Greater => "B takes more time",
        }
    }
}

/// Experiments A and B, and the comparison of B with A.
pub(super) struct ComparedExperiments {
    pub(super) folders: [PathBuf; 2],
    pub(super) alternative: Alternative,
    pub(super) settings: AnalysisSettings,
    pub(super) analyses: [Analysis; 2],
    pub(super) comparison: ExperimentComparison,
    /// Comparison within equal states of the machine, if these were measured.
    pub(super) states: Option<BlockedComparison>,
}

/// Name of the method by which a p-value was computed.
pub(super) const fn method_name(method: RankMethod) -> &'static str {
    match method {
        RankMethod::Exact => "exact",
        _ => "approximate",
    }
}
