//! Writing to standard output, and tables in text.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use downbeat_clock_core::Duration;

use crate::Failure;

/// Writes everything at once.
///
/// # Errors
/// When the disk is full or the pipe is closed.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|why| Failure::Run(format!("cannot write to standard output: {why}")))
}

/// Writes a document as indented JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    print(&(text + "\n"))
}

/// So many of a thing: `1 rank`, `2 ranks`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A time in nanoseconds, with as many digits as it is worth: `12.3 ns`, `375 ns`, `1.234 us`.
pub fn nanos(nanos: f64) -> String {
    if nanos.abs() < 100.0 && nanos.fract() != 0.0 {
        return format!("{nanos:.1} ns");
    }
    Duration::from_nanos_f64(nanos).map_or_else(String::new, |time| time.to_string())
}

/// Rows of cells, laid out in columns.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![headings.into_iter().map(str::to_owned).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// The table as text. Columns that hold a number in their first row of data are set to the right.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column| self.rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let is_number = |column| {
            self.rows.get(1).is_some_and(|row| cell(row, column).starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        };
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = if is_number(column) {
                    write!(line, "{:>width$}  ", cell(row, column))
                } else {
                    write!(line, "{:<width$}  ", cell(row, column))
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_lines_have_no_tail() {
        let mut table = Table::new(["name", "ns", "note"]);
        table.row(["a".into(), "9.5".into(), String::new()]);
        table.row(["long one".into(), "120.0".into(), "x".into()]);
        assert_eq!(table.render(), "name         ns  note\na           9.5\nlong one  120.0  x\n");
    }
}
