//! Reports as text, in the layout of the figures of White 2007.

mod detail;
#[cfg(test)]
mod golden;
mod number;
mod options;
mod summary;
mod threads;
mod tree;

use core::fmt;
use std::fmt::Write as _;

use super::report::ProfileReport;
use number::TickFormat;
pub use options::TextOptions;

impl ProfileReport {
    /// Summary of all regions, the times of threads and the call tree if there are any, then each region in detail: statistics
    /// over all ranks, and histograms of groups of ranks.
    ///
    /// Lines have at most 88 characters, except for long names. Averages are rounded down to whole
    /// ticks and events.
    pub fn text(&self, options: &TextOptions) -> String {
        let unit = TickFormat::new(self.tick);
        let mut text = summary::summary(self, &unit);
        threads::write(self, &unit, &mut text);
        tree::write(self, &unit, &mut text);
        let regions = self.regions();
        for region in regions.iter().take(options.most_details) {
            text.push('\n');
            detail::write_region(region, self.ranks, &unit, options, &mut text);
        }
        let left_out = regions.len().saturating_sub(options.most_details);
        if left_out > 0 {
            // Writing to a string cannot fail, here and in the child modules.
            let _ = writeln!(text, "\n({left_out} more in the profile only)");
        }
        text
    }
}

/// The text with the usual options.
impl fmt::Display for ProfileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&TextOptions::default()))
    }
}
