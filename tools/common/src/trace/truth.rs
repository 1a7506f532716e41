//! Errors of times against the true ones.

use downbeat_trace::deviation::TruthComparison;
use serde::Serialize;

use crate::output::time;
use crate::table::Table;

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

    /// Returns a table of the errors.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "error against the truth",
            "bias",
            "centred",
            "largest, centred",
        ]);
        for (stage, error) in [
            ("pre-synchronized", &self.pre_synchronized),
            ("corrected", &self.corrected),
        ] {
            table.row([
                stage.to_owned(),
                time(error.bias_nanos),
                time(error.centred_nanos),
                time(error.largest_centred_nanos),
            ]);
        }
        table
    }
}
