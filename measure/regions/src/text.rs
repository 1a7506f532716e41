//! Reports as text, laid out as in the figures of the 2007 paper.

mod detail;
#[cfg(test)]
mod golden;
mod number;
mod summary;

use std::fmt::Write as _;

use super::report::Report;
use number::Unit;

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

impl Report {
    /// A summary of all regions, then each in detail: the statistics over all ranks, and the histograms of those that look
    /// alike.
    ///
    /// Lines have at most 88 characters but for long names. Averages are cut to whole ticks and whole events.
    pub fn text(&self, options: &TextOptions) -> String {
        let unit = Unit::of(self.tick);
        let mut text = summary::of(self, &unit);
        let regions = self.regions();
        for region in regions.iter().take(options.most_details) {
            text.push('\n');
            detail::of(region, self.ranks, &unit, options, &mut text);
        }
        let left_out = regions.len().saturating_sub(options.most_details);
        if left_out > 0 {
            // Writing to a string cannot fail, here and in the parts.
            let _ = writeln!(text, "\n({left_out} more in the profile only)");
        }
        text
    }
}
