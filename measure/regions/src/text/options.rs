//! Options of the text of a report.

/// Limits for the text of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Maximum number of runs in a list of ranks; the other ranks are counted.
    pub most_runs: usize,
    /// Maximum number of regions with details, the longest first; the summary has all regions.
    pub most_details: usize,
}

/// All regions, and as many runs as fill about twenty lines.
impl Default for TextOptions {
    fn default() -> Self {
        Self {
            most_runs: 150,
            most_details: usize::MAX,
        }
    }
}
