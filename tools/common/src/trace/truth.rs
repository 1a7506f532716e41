//! Errors of times against the true ones.

use downbeat_trace::deviation::TruthComparison;
use serde::Serialize;

use crate::output::time;

/// Errors against the true times, before and after a correction.
#[derive(Debug, Serialize)]
pub struct TruthStages {
    /// Errors after pre-synchronization.
    pub pre_synchronized: TruthReport,
    /// Errors after the correction.
    pub corrected: TruthReport,
}

/// Errors against the true times.
#[derive(Debug, Serialize)]
pub struct TruthReport {
    /// Mean error: the time by which events are ahead of the truth.
    pub bias_nanos: f64,
    /// Root mean square of the errors without the bias.
    pub centred_nanos: f64,
    /// Largest error without the bias.
    pub largest_centred_nanos: f64,
}

impl From<TruthComparison> for TruthReport {
    fn from(error: TruthComparison) -> Self {
        Self {
            bias_nanos: error.bias(),
            centred_nanos: error.centred(),
            largest_centred_nanos: error.largest_centred(),
        }
    }
}

impl TruthStages {
    /// Creates the report from errors before and after.
    pub fn new(errors: [TruthComparison; 2]) -> Self {
        let [pre_synchronized, corrected] = errors.map(TruthReport::from);
        Self {
            pre_synchronized,
            corrected,
        }
    }

    /// Formats the errors without bias in one sentence.
    pub fn sentence(&self) -> String {
        let [before, after] = [&self.pre_synchronized, &self.corrected];
        let [before, after, largest] = [
            before.centred_nanos,
            after.centred_nanos,
            after.largest_centred_nanos,
        ]
        .map(time);
        format!(
            "Against the truth, the error without bias went from {before} to {after} \
             (largest {largest})."
        )
    }
}
