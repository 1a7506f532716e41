//! Raw data of ReproMPI: settings, the line of the columns, and a row for each call, or for each call and process.
//!
//! ```text
//! #@datatype_size_bytes=1
//! #@nprocs=4
//! #@nrep=10
//!           test       nrep        count    runtime_sec
//!  MPI_Allreduce          0            1   0.0000109819
//! ```
//!
//! Run-times are those of ReproMPI. Of the times of processes they are computed as it does: by the global clock, if there is
//! one, from the first that enters to the last that leaves, else the longest local one.

use std::collections::{BTreeMap, HashMap};

use super::collector::{Calls, Collector, Row};
use super::lines::SuiteLines;
use super::table::{CellReader, time, whole};
use crate::{GroupKey, ObservationState};

const SETTING: &str = "#@";
const VERSION: &str = "reproMPIcommitSHA1";
const RANKS: &str = "nprocs";
const TYPE_BYTES: &str = "datatype_size_bytes";
const CALLS: &str = "nrep";
/// Settings that ReproMPI measures when it begins: they differ between launches.
const MEASURED: [&str; 1] = ["bcast_runtime_s"];
/// Bits of the error code of a call.
const LATE: u64 = 1;

/// Returns true for a line with which an output may begin.
pub(super) fn begins(line: &str) -> bool {
    line.trim_start().starts_with(SETTING) || columns(line).is_some()
}

/// Reader of the lines of ReproMPI.
#[derive(Debug, Default)]
pub(super) struct ReprompiLines {
    /// True if settings belong to the current output, in which no table began.
    in_settings: bool,
    settings: HashMap<String, String>,
    table: Option<CallTable>,
}

#[derive(Debug)]
struct CallTable {
    columns: Vec<String>,
    cells: CellReader,
    ranks: u32,
    type_bytes: Option<u64>,
    calls: Option<u64>,
    groups: BTreeMap<(String, u64), CallGroup>,
}

/// Calls of one operation and size.
#[derive(Debug, Default)]
struct CallGroup {
    /// Number of the next call, if rows are calls.
    next: u64,
    /// Calls of which some processes are known.
    calls: BTreeMap<u64, ProcessTimes>,
}

/// Times of the processes of a call, in picoseconds.
#[derive(Debug)]
struct ProcessTimes {
    processes: Vec<u64>,
    first: i128,
    last: i128,
    longest: i128,
    errors: u64,
}

impl SuiteLines for ReprompiLines {
    fn line(&mut self, line: &str, to: &mut Collector<'_>) -> Result<(), String> {
        if let Some(setting) = line.trim().strip_prefix(SETTING) {
            if !self.in_settings {
                self.end(to)?;
                self.in_settings = true;
            }
            if let Some((name, value)) = setting.split_once('=') {
                self.settings
                    .insert(name.trim().to_owned(), value.trim().to_owned());
            }
            return Ok(());
        }
        if let Some(columns) = columns(line) {
            if !self.in_settings {
                self.end(to)?;
            }
            self.table = Some(self.begin(columns, to)?);
            self.in_settings = false;
            return Ok(());
        }
        match &mut self.table {
            Some(table) => table.line(line, to),
            None => Ok(()),
        }
    }

    fn is_row(&self, line: &str) -> bool {
        self.table
            .as_ref()
            .is_some_and(|table| table.cells.is_row(line))
    }

    fn end(&mut self, to: &mut Collector<'_>) -> Result<(), String> {
        self.settings.clear();
        self.table.take().map_or(Ok(()), |table| table.end(to))
    }
}

impl ReprompiLines {
    fn begin(&self, columns: Vec<String>, to: &mut Collector<'_>) -> Result<CallTable, String> {
        if to.settings.column.is_some() {
            return Err(
                "ReproMPI prints the times of calls; there is no column to choose".to_owned(),
            );
        }
        if columns.iter().any(|column| column == "total_nrep") {
            return Err("this is a summary of ReproMPI; import the raw data, which it prints without --summary".to_owned());
        }
        let version = self.settings.get(VERSION).map_or("unknown", String::as_str);
        to.begin("ReproMPI", version);
        let mut names: Vec<_> = self
            .settings
            .iter()
            .filter(|(name, _)| *name != VERSION && *name != CALLS)
            .collect();
        names.sort_unstable();
        for (name, value) in names {
            match MEASURED.contains(&name.as_str()) {
                true => to.fact(name, value),
                false => to.factor(name, value),
            }
        }
        let number = |name: &str| {
            self.settings
                .get(name)
                .map(|value| whole(value))
                .transpose()
        };
        let too_large = |_| "the number of processes is too large".to_owned();
        let stated = number(RANKS)?
            .map(|ranks| u32::try_from(ranks).map_err(too_large))
            .transpose()?;
        let ranks = to.ranks(stated)?;
        let is_row = |cells: &[&str], columns: usize| {
            cells.len() == columns || cells.iter().any(|cell| cell.starts_with("MPI_"))
        };
        Ok(CallTable {
            cells: CellReader::new(columns.len(), is_row),
            ranks,
            type_bytes: number(TYPE_BYTES)?,
            calls: number(CALLS)?,
            groups: BTreeMap::new(),
            columns,
        })
    }
}

impl CallTable {
    /// Returns true if the processes have a common clock.
    fn is_global(&self) -> bool {
        self.columns.iter().any(|column| column == "gl_tend_sec")
    }

    fn line(&mut self, line: &str, to: &mut Collector<'_>) -> Result<(), String> {
        let Some(cells) = self.cells.read(line)? else {
            return Ok(());
        };
        let is_global = self.is_global();
        let cell = |name: &str| {
            self.columns
                .iter()
                .position(|column| column == name)
                .map(|place| cells[place])
        };
        let number = |name: &str| cell(name).map(whole).transpose();
        let test = cell("test").unwrap_or_default();
        let operation = test
            .strip_prefix("MPI_")
            .unwrap_or(test)
            .to_ascii_lowercase();
        let bytes = match number("count")? {
            None => number("msize_bytes")?
                .or(number("msize")?)
                .unwrap_or_default(),
            Some(0) => 0,
            Some(count) => {
                let bytes = self.type_bytes.and_then(|bytes| bytes.checked_mul(count));
                bytes.ok_or(
                    "the output does not state the size of its datatype (#@datatype_size_bytes)",
                )?
            }
        };
        let key = GroupKey {
            operation: operation.clone(),
            bytes,
            ranks: self.ranks,
        };
        let group = self.groups.entry((operation, bytes)).or_default();
        let call = number("nrep")?.unwrap_or_default();
        let errors = number("errorcode")?.unwrap_or_default();
        let Some(process) = number("process")? else {
            if call != group.next {
                return Err(format!(
                    "call {call} of {key} comes where call {} should be",
                    group.next
                ));
            }
            group.next += 1;
            let nanos = time(cell("runtime_sec").unwrap_or_default(), 9)?;
            return to.row(row(key, state(errors), nanos));
        };
        let clock = if is_global { "gl" } else { "loc" };
        let moment = |edge: &str| {
            let cell = cell(&format!("{clock}_{edge}_sec"));
            picos(cell.ok_or("the table lacks the times of the processes")?)
        };
        let (start, end) = (moment("tstart")?, moment("tend")?);
        if end < start {
            return Err("this call ends before it begins".to_owned());
        }
        let times = group
            .calls
            .entry(call)
            .or_insert_with(|| ProcessTimes::new(start, end));
        if process >= self.ranks.into() {
            return Err(format!(
                "there is no process {process} among {}",
                self.ranks
            ));
        }
        if times.processes.contains(&process) {
            return Err(format!("process {process} has call {call} of {key} twice"));
        }
        times.add(process, start, end, errors);
        Ok(())
    }

    /// Adds the calls of which all processes are known.
    fn end(self, to: &mut Collector<'_>) -> Result<(), String> {
        let is_global = self.is_global();
        let mut is_cut_off = false;
        for ((operation, bytes), group) in self.groups {
            let key = GroupKey {
                operation,
                bytes,
                ranks: self.ranks,
            };
            let number = group.next.max(group.calls.len() as u64);
            is_cut_off |= self.calls.is_some_and(|calls| number < calls);
            let is_whole = |times: &ProcessTimes| times.processes.len() == self.ranks as usize;
            if !group.calls.is_empty() && !group.calls.values().any(is_whole) {
                let ranks = self.ranks;
                return Err(format!(
                    "no call of {key} has the times of all {ranks} processes"
                ));
            }
            for times in group.calls.into_values() {
                if !is_whole(&times) {
                    is_cut_off = true;
                    continue;
                }
                let picos = match is_global {
                    true => times.last - times.first,
                    false => times.longest,
                };
                to.row(row(key.clone(), state(times.errors), picos as f64 / 1e3))?;
            }
        }
        if is_cut_off {
            to.cut_off();
        }
        Ok(())
    }
}

impl ProcessTimes {
    fn new(start: i128, end: i128) -> Self {
        Self {
            processes: Vec::new(),
            first: start,
            last: end,
            longest: 0,
            errors: 0,
        }
    }

    fn add(&mut self, process: u64, start: i128, end: i128, errors: u64) {
        self.processes.push(process);
        self.first = self.first.min(start);
        self.last = self.last.max(end);
        self.longest = self.longest.max(end - start);
        self.errors |= errors;
    }
}

fn row(key: GroupKey, state: ObservationState, nanos: f64) -> Row {
    Row {
        key,
        state,
        nanos,
        figures: Vec::new(),
        calls: Calls::One,
    }
}

/// State of a call with this error code.
fn state(errors: u64) -> ObservationState {
    match errors {
        0 => ObservationState::Valid,
        errors if errors & LATE != 0 => ObservationState::Late,
        _ => ObservationState::Long,
    }
}

/// Reads a moment in seconds. Seconds since 1970 have more digits than an `f64`.
fn picos(cell: &str) -> Result<i128, String> {
    let (seconds, fraction) = cell.split_once('.').unwrap_or((cell, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty()
        || seconds.len() > 12
        || fraction.len() > 12
        || !digits(seconds)
        || !digits(fraction)
    {
        return Err(format!(
            "\"{}\" is no moment in seconds",
            downbeat_files::shown(cell.as_bytes())
        ));
    }
    format!("{seconds}{fraction:0<12}")
        .parse()
        .map_err(|_| "a moment has too many digits".to_owned())
}

/// Returns the names of the line of the columns; `None` if it is another one.
fn columns(line: &str) -> Option<Vec<String>> {
    let names: Vec<String> = line
        .split_ascii_whitespace()
        .take(16)
        .map(str::to_owned)
        .collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    let has_time = has("runtime_sec") || has("loc_tend_sec") || has("total_nrep");
    (has("test") && has_time).then_some(names)
}
