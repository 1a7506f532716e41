//! Output to standard output, and tables as text.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::Failure;

/// Writes a text to standard output.
///
/// # Errors
/// When it cannot be written: the disk is full or the pipe is closed.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|why| Failure::Run(format!("cannot write to standard output: {why}")))
}

/// Reports the failure with which the program ends, in one line that begins with its name; returns the exit code.
pub fn report_failure(failure: Failure, program: &str) -> ExitCode {
    match failure {
        Failure::Help(text) => match print(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => report_failure(failure, program),
        },
        Failure::Input(ref line) | Failure::Run(ref line) | Failure::Signal(_, ref line) => {
            // There may be no place to write to: the exit code remains.
            let _ = writeln!(io::stderr(), "{program}: {}", in_one_line(line));
            failure.exit_code()
        }
    }
}

/// Escapes control characters, which names of files and other foreign text may contain.
fn in_one_line(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Writes a document as indented JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(Failure::run)?;
    print(&(text + "\n"))
}

/// Writes a number of things: `1 rank`, `2 ranks`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Writes a time in the best readable unit; nanoseconds with a fraction, which averages have: `381.2 ns`, `4.200 us`.
pub fn time(nanos: f64) -> String {
    let unit = PrintUnit::for_nanos(nanos);
    format!("{} {}", unit.number(nanos), unit.name)
}

/// Writes a time and the ends of its interval in one unit: `381.2 [379.9, 383.0] ns`.
pub fn time_within(nanos: f64, [low, high]: [f64; 2]) -> String {
    let unit = PrintUnit::for_nanos(nanos);
    format!(
        "{} [{}, {}] {}",
        unit.number(nanos),
        unit.number(low),
        unit.number(high),
        unit.name
    )
}

/// Unit of a printed time.
struct PrintUnit {
    nanos: f64,
    name: &'static str,
    digits: usize,
}

impl PrintUnit {
    fn for_nanos(nanos: f64) -> Self {
        let (unit, name, digits) = match nanos.abs() {
            // A value that would be rounded up to 1000.0 is a microsecond.
            small if small < 999.95 => (1.0, "ns", 1),
            small if small < 1e6 - 0.5 => (1e3, "us", 3),
            small if small < 1e9 - 500.0 => (1e6, "ms", 3),
            _ => (1e9, "s", 3),
        };
        Self {
            nanos: unit,
            name,
            digits,
        }
    }

    fn number(&self, nanos: f64) -> String {
        // A value that is rounded to zero has no sign.
        let half = 0.5 * 10_f64.powi(-(self.digits as i32)) * self.nanos;
        let nanos = if nanos.abs() < half { 0.0 } else { nanos };
        format!("{:.*}", self.digits, nanos / self.nanos)
    }
}

/// Writes a share as a percentage, small ones with more digits: `3.2 %`.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = match percent.abs() {
        large if large >= 99.95 => 0,
        large if large >= 0.995 => 1,
        0.0 => 0,
        _ => 2,
    };
    format!("{percent:.digits$} %")
}

/// Writes a probability: `0.0412`, or `2.1e-9` instead of zeros.
pub fn probability(p: f64) -> String {
    if p == 0.0 || p >= 0.000_95 {
        format!("{p:.4}")
    } else {
        format!("{p:.1e}")
    }
}

/// Table of text, laid out in columns.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these headings.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            rows: vec![headings.into_iter().map(str::to_owned).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Returns the table as text. Columns that hold a number in their first row of data are aligned to the right.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column| {
            self.rows
                .iter()
                .map(|row| cell(row, column).chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let is_number = |column| {
            self.rows.get(1).is_some_and(|row| {
                cell(row, column)
                    .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'))
            })
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
    fn times_have_the_best_readable_unit() {
        let shown = [
            0.0, -0.01, 381.25, -12.0, 999.94, 999.96, 4_200.0, 999_999.6, -1.5e6, 2.5e9, 1e15,
        ]
        .map(time);
        let expected = [
            "0.0 ns", "0.0 ns", "381.2 ns", "-12.0 ns", "999.9 ns", "1.000 us", "4.200 us",
            "1.000 ms",
        ];
        assert_eq!(shown[..8], expected);
        assert_eq!(shown[8..], ["-1.500 ms", "2.500 s", "1000000.000 s"]);
        assert_eq!(
            time_within(1_250.0, [990.0, 12_000.0]),
            "1.250 [0.990, 12.000] us"
        );
    }

    #[test]
    fn shares_and_probabilities_keep_the_digits_that_matter() {
        let shown = [0.0, 0.000_4, 0.012_34, -0.5, 1.0, 3.0].map(percent);
        assert_eq!(
            shown,
            ["0 %", "0.04 %", "1.2 %", "-50.0 %", "100 %", "300 %"]
        );
        assert_eq!(
            [1.0, 0.05, 0.001, 2.13e-9, 0.0].map(probability),
            ["1.0000", "0.0500", "0.0010", "2.1e-9", "0.0000"]
        );
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_lines_are_trimmed() {
        let mut table = Table::new(["name", "ns", "note"]);
        table.row(["a".into(), "9.5".into(), String::new()]);
        table.row(["long one".into(), "120.0".into(), "x".into()]);
        assert_eq!(
            table.render(),
            "name         ns  note\na           9.5\nlong one  120.0  x\n"
        );
    }
}
