//! Intel MPI Benchmarks: a title with what was run, and a table for each benchmark and number of processes.
//!
//! ```text
//! #    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
//! # Date                  : Mon Nov 20 19:56:00 2023
//!
//! # Benchmarking Allreduce
//! # #processes = 4
//! #----------------------------------------------------------------
//!        #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
//!             0         1000         0.04         0.04         0.04
//!
//! # All processes entering MPI_Finalize
//! ```

use super::collector::Collector;
use super::lines::SuiteLines;
use super::table::{AverageTable, Column, ONLY_TIME};

const SUITE: &str = "Intel MPI Benchmarks";
const SECTION: &str = "# Benchmarking ";
const END: &str = "# All processes entering MPI_Finalize";
/// Words that are printed instead of times that were not measured.
const NOT_MEASURED: [&str; 3] = ["out-of-mem.", "time-out.", "int-overflow."];

/// Facts of a title, with their names in records.
const FACTS: [(&str, &str); 5] = [
    ("Date", "date"),
    ("Machine", "machine"),
    ("System", "system"),
    ("Release", "kernel"),
    ("Version", "kernel version"),
];
/// Settings that change results.
const FACTORS: [(&str, &str); 5] = [
    ("MPI Version", "MPI standard"),
    ("MPI Thread Environment", "threads"),
    ("MPI_Datatype", "datatype"),
    ("MPI_Datatype for reductions", "datatype of reductions"),
    ("MPI_Op", "reduction"),
];

const COLUMNS: [(&str, Column); 14] = [
    ("Group", Column::Other),
    ("#bytes", Column::Bytes),
    ("#repetitions", Column::Calls),
    ("t[usec]", Column::Micros(ONLY_TIME)),
    ("t_min[usec]", Column::Micros("min")),
    ("t_max[usec]", Column::Micros("max")),
    ("t_avg[usec]", Column::Micros("avg")),
    ("t_ovrl[usec]", Column::Micros("ovrl")),
    ("t_pure[usec]", Column::Micros("pure")),
    ("t_CPU[usec]", Column::Micros("cpu")),
    ("overlap[%]", Column::Other),
    ("Mbytes/sec", Column::Other),
    ("Msg/sec", Column::Other),
    ("defects", Column::Other),
];

/// Returns true for a line with which an output may begin.
pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    version(line).is_some() || line.starts_with(SECTION)
}

/// Returns the version in a title, which is written in several ways: `Intel (R) MPI Benchmark Suite V3.2, MPI-1 part`.
fn version(line: &str) -> Option<&str> {
    let title = line.strip_prefix('#')?.trim_start();
    let rest = title
        .strip_prefix("Intel(R) MPI Benchmark")
        .or_else(|| title.strip_prefix("Intel (R) MPI Benchmark"))?;
    let rest = rest
        .strip_prefix('s')
        .or_else(|| rest.strip_prefix(" Suite"))?;
    Some(rest.split(',').next()?.trim().trim_start_matches('V'))
}

/// Reader of the lines of IMB.
#[derive(Debug, Default)]
pub(super) struct ImbLines {
    output: Output,
    /// True if the next comment is the command.
    command_follows: bool,
    section: Section,
    table: Option<AverageTable>,
}

/// State of the output of one run.
#[derive(Debug, Default, PartialEq, Eq)]
enum Output {
    /// None has begun, or it has ended.
    #[default]
    None,
    /// It began with its title.
    Whole,
    /// It began with a section, of which these were found. A second one of a kind is of another run.
    Excerpt(Vec<(String, Option<u32>)>),
}

#[derive(Debug, Default)]
struct Section {
    operation: String,
    processes: Option<u32>,
    /// Groups of processes that ran the benchmark at the same time; none if there is one.
    groups: Option<u32>,
}

impl SuiteLines for ImbLines {
    fn line(&mut self, line: &str, to: &mut Collector<'_>) -> Result<(), String> {
        let line = line.trim();
        if let Some(version) = version(line) {
            self.end(to)?;
            to.begin(SUITE, version);
            self.output = Output::Whole;
        } else if let Some(name) = line.strip_prefix(SECTION) {
            self.table = None;
            self.section = Section::new(name);
        } else if line == END {
            self.table = None;
            self.output = Output::None;
        } else if let Some(columns) = columns(line)? {
            let Section { processes, .. } = self.section;
            self.continue_excerpt(to);
            self.table = AverageTable::new(columns, &self.section.operation(), processes, to)?;
        } else if let Some(comment) = line.strip_prefix('#') {
            self.comment(comment.trim(), to);
        } else if let Some(table) = &mut self.table {
            let cells = line.split_ascii_whitespace().take(3);
            if !cells
                .into_iter()
                .any(|cell| NOT_MEASURED.iter().any(|not| cell.starts_with(not)))
            {
                table.line(line, to)?;
            }
        }
        Ok(())
    }

    fn is_row(&self, line: &str) -> bool {
        self.table.as_ref().is_some_and(|table| table.is_row(line))
    }

    fn end(&mut self, to: &mut Collector<'_>) -> Result<(), String> {
        // Only the last line of an output says that it was not killed.
        if self.output == Output::Whole {
            to.cut_off();
        }
        *self = Self::default();
        Ok(())
    }
}

impl ImbLines {
    /// Begins the output of another run where an excerpt shows that there is one.
    fn continue_excerpt(&mut self, to: &mut Collector<'_>) {
        let section = (self.section.operation(), self.section.processes);
        match &mut self.output {
            Output::Whole => (),
            Output::Excerpt(known) if !known.contains(&section) => known.push(section),
            Output::None | Output::Excerpt(_) => {
                to.begin(SUITE, "unknown");
                self.output = Output::Excerpt(vec![section]);
            }
        }
    }

    /// Reads a comment of a title or section.
    fn comment(&mut self, comment: &str, to: &mut Collector<'_>) {
        if self.command_follows && !comment.is_empty() {
            to.fact("command", comment);
            self.command_follows = false;
        }
        self.command_follows |= comment.starts_with("Calling sequence was");
        self.section.comment(comment);
        let Some((name, value)) = comment.split_once(':') else {
            return;
        };
        let name_of = |names: &[(&str, &'static str)]| {
            let found = names.iter().find(|(printed, _)| *printed == name.trim());
            found
                .map(|(_, name)| *name)
                .filter(|_| !value.trim().is_empty())
        };
        if let Some(name) = name_of(&FACTS) {
            to.fact(name, value);
        }
        if let Some(name) = name_of(&FACTORS) {
            to.factor(name, value);
        }
    }
}

impl Section {
    fn new(name: &str) -> Self {
        Self {
            operation: name
                .trim()
                .replace(char::is_whitespace, "-")
                .to_ascii_lowercase(),
            ..Self::default()
        }
    }

    /// Reads `#processes = 4` or `( 2 groups of 2 processes each running simultaneous )`.
    fn comment(&mut self, comment: &str) {
        let number = |text: &str| text.split_whitespace().next()?.parse().ok();
        if let Some(processes) = comment.strip_prefix("#processes =") {
            self.processes = number(processes);
        } else if let Some((groups, processes)) = comment
            .strip_prefix('(')
            .and_then(|text| text.split_once(" groups of "))
        {
            (self.groups, self.processes) = (number(groups), number(processes));
        }
    }

    /// Operation of the section; another one if several groups disturb each other.
    fn operation(&self) -> String {
        match self.groups {
            Some(groups) => format!("{}-x{groups}", self.operation),
            None => self.operation.clone(),
        }
    }
}

/// Reads the line of the columns; `None` if it is another one.
fn columns(line: &str) -> Result<Option<Vec<Column>>, String> {
    let column = |name: &str| {
        COLUMNS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, column)| *column)
    };
    let mut names = line.split_ascii_whitespace();
    if !names.clone().any(|name| name == "#repetitions") {
        return Ok(None);
    }
    let found: Result<Vec<Column>, &str> = names.try_fold(Vec::new(), |mut all, name| {
        all.push(column(name).ok_or(name)?);
        Ok(all)
    });
    found
        .map(Some)
        .map_err(|name| format!("the column \"{}\" is unknown", name.escape_debug()))
}
