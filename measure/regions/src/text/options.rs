//! Options of the text of a report.

/// How much of a report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// So many runs of a list of ranks; the others are counted.
    pub most_runs: usize,
    /// So many regions in detail, those that take the longest; the summary has all.
    pub most_details: usize,
}

/// All regions; the runs of ranks that fill some twenty lines.
impl Default for TextOptions {
    fn default() -> Self {
        Self {
            most_runs: 150,
            most_details: usize::MAX,
        }
    }
}
