//! Two experiments and their comparison.

use std::path::PathBuf;

use downbeat_records::analysis::{Analysis, AnalysisSettings, ExperimentComparison};
use downbeat_records::stats::RankMethod;

use crate::experiments::Alternative;

/// Level of the normality test below which the t-test of means counts as doubtful.
pub(super) const NORMALITY: f64 = 0.05;

/// Experiments A and B, and the comparison of B with A.
pub(super) struct ComparedExperiments {
    pub(super) folders: [PathBuf; 2],
    pub(super) alternative: Alternative,
    pub(super) settings: AnalysisSettings,
    pub(super) analyses: [Analysis; 2],
    pub(super) comparison: ExperimentComparison,
}

/// Name of the method by which a p-value was computed.
pub(super) const fn method_name(method: RankMethod) -> &'static str {
    match method {
        RankMethod::Exact => "exact",
        _ => "approximate",
    }
}
