//! Summary of one group of a launch.

use serde::Serialize;

/// Summary of one group.
#[derive(Debug, Serialize)]
pub(super) struct GroupSummary {
    pub(super) operation: String,
    pub(super) bytes: u64,
    pub(super) ranks: u32,
    pub(super) valid: usize,
    pub(super) late: usize,
    pub(super) long: usize,
    pub(super) drifted: usize,
    /// Number of observations that were made; of very many in a time slice, evenly spaced ones are kept.
    pub(super) made: u32,
    /// Number of independent observations whose mean would be as precise; `None` if it cannot be estimated.
    pub(super) effective: Option<f64>,
    /// Reason why an interval of the mean is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) no_interval: Option<String>,
    pub(super) ended: String,
    pub(super) elapsed_s: f64,
    /// Number of figures of the processing; the others that follow help to find errors.
    #[serde(skip)]
    pub(super) processed: usize,
    /// Figures; the first is the main result.
    #[serde(serialize_with = "as_object")]
    pub(super) figures_ns: Vec<(String, f64)>,
    /// First figures of measurements that were discarded in favour of this one.
    pub(super) discarded_ns: Vec<f64>,
    /// Number of synchronizations of the global clock, if it can drift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) synchronizations: Option<u32>,
}

impl GroupSummary {
    /// Returns the number of observations that were kept, valid or not.
    pub(super) fn all(&self) -> usize {
        self.valid + self.late + self.long + self.drifted
    }

    /// Returns a figure by its name.
    pub(super) fn figure(&self, name: &str) -> Option<f64> {
        let found = self.figures_ns.iter().find(|(known, _)| known == name);
        found.map(|(_, nanos)| *nanos)
    }

    /// Returns the main result.
    pub(super) fn reported(&self) -> Option<f64> {
        self.figures_ns.first().map(|(_, nanos)| *nanos)
    }
}

/// Writes times in nanoseconds on one line.
pub(super) fn nanos_list(nanos: &[f64]) -> String {
    let all: Vec<String> = nanos.iter().map(f64::to_string).collect();
    format!("{} ns", all.join(" "))
}

fn as_object<S: serde::Serializer>(
    figures: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().map(|(name, nanos)| (name, nanos)))
}
