//! Common part of the formats that consist of lines.

use super::collector::Collector;

/// Reader of the lines of a suite.
pub(super) trait SuiteLines {
    /// Reads a line.
    fn line(&mut self, line: &str, to: &mut Collector<'_>) -> Result<(), String>;

    /// Returns true for a line that should be a row of the current table.
    fn is_row(&self, line: &str) -> bool;

    /// Completes the current output.
    fn end(&mut self, to: &mut Collector<'_>) -> Result<(), String>;
}
