//! Tables of numbers among other lines.

use downbeat_files::{number, shown};

use super::collector::{Calls, Collector, Row};
use crate::{GroupKey, ObservationState};

/// Content of a column of OSU or IMB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Bytes,
    /// Number of calls that a time is the average of.
    Calls,
    /// Time in microseconds, with its name as a figure.
    Micros(&'static str),
    /// Megabytes of 10^6 bytes per second.
    Bandwidth,
    /// Result of a check of the messages.
    Validation,
    Other,
}

/// Figure of a table that has one time; it stands for every column that may be chosen.
pub(super) const ONLY_TIME: &str = "time";
/// Column that is the observation unless another one is chosen.
const USUAL: &str = "avg";

/// Table of averages, from the line of its columns on.
#[derive(Debug)]
pub(super) struct AverageTable {
    columns: Vec<Column>,
    observation: usize,
    cells: CellReader,
    operation: String,
    ranks: u32,
}

impl AverageTable {
    /// Begins a table; `None` if it has no times, which is noted.
    pub(super) fn new(
        columns: Vec<Column>,
        operation: &str,
        ranks: Option<u32>,
        to: &mut Collector<'_>,
    ) -> Result<Option<Self>, String> {
        let times: Vec<&str> = columns.iter().filter_map(Column::time).collect();
        let of_time = |name: &str| {
            columns
                .iter()
                .position(|column| column.time() == Some(name))
        };
        let wanted = to.settings.column.as_deref();
        let wanted = wanted.map_or_else(|| USUAL.to_owned(), canonical);
        let observation = match times.as_slice() {
            [] => columns
                .iter()
                .position(|column| *column == Column::Bandwidth),
            [first, ..] => {
                let usual = to.settings.column.is_none().then_some(*first);
                let found = of_time(&wanted).or_else(|| of_time(ONLY_TIME));
                let found = found.or_else(|| of_time(usual?));
                Some(found.ok_or_else(|| {
                    let (wanted, times) = (wanted.escape_debug(), times.join(", "));
                    format!("there is no column \"{wanted}\"; the table has {times}")
                })?)
            }
        };
        let Some(observation) = observation else {
            to.leave_out(operation);
            return Ok(None);
        };
        to.factor("column", &wanted);
        let ranks = to.ranks(ranks)?;
        Ok(Some(Self {
            cells: CellReader::new(columns.len(), begins_with_number),
            columns,
            observation,
            operation: operation.to_owned(),
            ranks,
        }))
    }

    /// Returns true for a line that should be a row.
    pub(super) fn is_row(&self, line: &str) -> bool {
        self.cells.is_row(line)
    }

    /// Reads a line, which may be a row.
    pub(super) fn line(&mut self, line: &str, to: &mut Collector<'_>) -> Result<(), String> {
        let Some(cells) = self.cells.read(line)? else {
            return Ok(());
        };
        let (mut bytes, mut calls, mut nanos, mut figures) = (0, None, 0.0, Vec::new());
        for (column, cell) in self.columns.iter().zip(&cells) {
            match column {
                Column::Bytes => bytes = whole(cell)?,
                Column::Calls => calls = Some(whole(cell)?),
                Column::Micros(name) => figures.push(((*name).to_owned(), time(cell, 3)?)),
                Column::Validation if !cell.eq_ignore_ascii_case("pass") => {
                    return Err(format!(
                        "the validation of these messages says \"{}\"",
                        shown(cell.as_bytes())
                    ));
                }
                Column::Bandwidth | Column::Validation | Column::Other => {}
            }
        }
        match self.columns[self.observation].time() {
            Some(name) => {
                let place = figures
                    .iter()
                    .position(|(figure, _)| figure == name)
                    .unwrap_or_default();
                let observation = figures.remove(place);
                nanos = observation.1;
                figures.insert(0, observation);
            }
            None => nanos += per_message(bytes, cells[self.observation])?,
        }
        to.row(Row {
            key: GroupKey {
                operation: self.operation.clone(),
                bytes,
                ranks: self.ranks,
            },
            state: ObservationState::Valid,
            nanos,
            figures,
            calls: Calls::Average(calls),
        })
    }
}

impl Column {
    fn time(&self) -> Option<&'static str> {
        match self {
            Self::Micros(name) => Some(name),
            _ => None,
        }
    }
}

/// Removes what a suite writes around the name of a column: `t_avg[usec]` is `avg`.
fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.split(['[', '(']).next().unwrap_or_default().trim();
    name.strip_prefix("t_").unwrap_or(name).to_owned()
}

/// Returns the time per message, in nanoseconds, of a bandwidth in megabytes per second.
fn per_message(bytes: u64, bandwidth: &str) -> Result<f64, String> {
    let bandwidth = time(bandwidth, 0)?;
    if bandwidth > 0.0 {
        Ok(bytes as f64 * 1e3 / bandwidth)
    } else {
        Err("the bandwidth is 0, which is no time".to_owned())
    }
}

fn begins_with_number(cells: &[&str], _: usize) -> bool {
    cells[0].starts_with(|c: char| c.is_ascii_digit())
}

/// Reader of the cells of a table. Launchers may print before the rows and after them, but not between them.
#[derive(Debug)]
pub(super) struct CellReader {
    columns: usize,
    /// Tells by some cells and the number of columns whether a line should be a row.
    is_row: fn(&[&str], usize) -> bool,
    /// First line after the rows that is none.
    other: Option<String>,
    has_rows: bool,
}

impl CellReader {
    pub(super) fn new(columns: usize, is_row: fn(&[&str], usize) -> bool) -> Self {
        Self {
            columns,
            is_row,
            other: None,
            has_rows: false,
        }
    }

    /// Returns true for a line that should be a row.
    pub(super) fn is_row(&self, line: &str) -> bool {
        let cells = self.cells(line);
        !cells.is_empty() && (self.is_row)(&cells, self.columns)
    }

    /// Returns the cells of a row; `None` for other lines.
    pub(super) fn read<'a>(&mut self, line: &'a str) -> Result<Option<Vec<&'a str>>, String> {
        let cells = self.cells(line);
        if cells.is_empty() || cells[0].starts_with('#') {
            return Ok(None);
        }
        if !(self.is_row)(&cells, self.columns) {
            if self.has_rows && self.other.is_none() {
                self.other = Some(shown(line.trim().as_bytes()));
            }
            return Ok(None);
        }
        if cells.len() != self.columns {
            let line = shown(line.trim().as_bytes());
            return Err(format!(
                "\"{line}\" is no row of this table, which has {} columns",
                self.columns
            ));
        }
        if let Some(other) = &self.other {
            return Err(format!(
                "before this row, inside of the table, is a line that is none: \"{other}\""
            ));
        }
        self.has_rows = true;
        Ok(Some(cells))
    }

    /// Returns the cells of a line, at most one more than a row has.
    fn cells<'a>(&self, line: &'a str) -> Vec<&'a str> {
        line.split_ascii_whitespace()
            .take(self.columns + 1)
            .collect()
    }
}

/// Reads a whole number.
pub(super) fn whole(cell: &str) -> Result<u64, String> {
    match number::whole(cell.as_bytes()) {
        Some((number, [])) => Ok(number),
        _ => Err(format!("\"{}\" is no whole number", shown(cell.as_bytes()))),
    }
}

/// Reads a time that is not negative, in units of 10^`exponent` nanoseconds; as near as if it was printed in nanoseconds.
pub(super) fn time(cell: &str, exponent: i32) -> Result<f64, String> {
    if cell.contains(',') {
        let cell = shown(cell.as_bytes());
        return Err(format!(
            "\"{cell}\" has a comma; numbers must have a decimal point (LC_ALL=C) and no other mark"
        ));
    }
    let (digits, power) = cell.split_once(['e', 'E']).unwrap_or((cell, "0"));
    let power = power
        .parse::<i32>()
        .ok()
        .and_then(|power| power.checked_add(exponent));
    let nanos = power.and_then(|power| number::finite(format!("{digits}e{power}").as_bytes()));
    match nanos {
        Some(nanos) if nanos < 0.0 => Err(format!("\"{}\" is negative", shown(cell.as_bytes()))),
        // Without the sign of a zero. Longer times than 292 years cannot be analysed.
        Some(nanos) if nanos <= i64::MAX as f64 => Ok(nanos.abs()),
        _ => Err(format!("\"{}\" is no time", shown(cell.as_bytes()))),
    }
}
