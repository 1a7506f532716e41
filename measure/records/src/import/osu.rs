//! OSU Micro-Benchmarks: a title, lines about the messages, the line of the columns, and a row for each size.
//!
//! ```text
//! # OSU MPI Allreduce Latency Test v7.1
//! # Datatype: MPI_CHAR.
//! # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
//! 1                     174.36            135.35            221.55        1000
//! ```

use super::collector::Collector;
use super::lines::SuiteLines;
use super::table::{AverageTable, Column};

const TITLE: &str = "# OSU ";
/// Lines that name a setting of an operation.
const SETTINGS: [&str; 3] = ["Datatype", "Window creation", "Synchronization"];

/// Names of columns without blanks, which differ between versions.
const COLUMNS: [(&str, Column); 22] = [
    ("Size", Column::Bytes),
    ("AvgLatency(us)", Column::Micros("avg")),
    ("Latency(us)", Column::Micros("avg")),
    ("MinLatency(us)", Column::Micros("min")),
    ("MaxLatency(us)", Column::Micros("max")),
    ("P50TailLat(us)", Column::Micros("p50")),
    ("P90TailLat(us)", Column::Micros("p90")),
    ("P99TailLat(us)", Column::Micros("p99")),
    ("Overall(us)", Column::Micros("overall")),
    ("Compute(us)", Column::Micros("compute")),
    ("PureComm.(us)", Column::Micros("pure")),
    ("MinComm.(us)", Column::Micros("pure-min")),
    ("MaxComm.(us)", Column::Micros("pure-max")),
    ("Coll.Init(us)", Column::Micros("init")),
    ("MPI_Test(us)", Column::Micros("test")),
    ("MPI_Wait(us)", Column::Micros("wait")),
    ("Iterations", Column::Calls),
    ("Bandwidth(MB/s)", Column::Bandwidth),
    ("Validation", Column::Validation),
    ("Overlap(%)", Column::Other),
    ("MB/s", Column::Other),
    ("Messages/s", Column::Other),
];

/// Returns true for the title of an output.
pub(super) fn begins(line: &str) -> bool {
    title(line).is_some()
}

/// Splits a title into the benchmark and the version.
fn title(line: &str) -> Option<(&str, &str)> {
    let (name, version) = line.trim().strip_prefix(TITLE)?.rsplit_once(" v")?;
    let is_version = version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(' ');
    Some((name, version)).filter(|_| is_version)
}

/// Reader of the lines of OSU.
#[derive(Debug, Default)]
pub(super) struct OsuLines {
    benchmark: Option<Benchmark>,
    table: Option<AverageTable>,
}

#[derive(Debug)]
struct Benchmark {
    operation: String,
    /// Number of ranks, of programs that have two.
    ranks: Option<u32>,
}

impl SuiteLines for OsuLines {
    fn line(&mut self, line: &str, to: &mut Collector<'_>) -> Result<(), String> {
        if let Some((name, version)) = title(line) {
            to.begin("OSU Micro-Benchmarks", version);
            self.table = None;
            self.benchmark = Some(Benchmark::new(name, to));
            return Ok(());
        }
        let Some(benchmark) = &self.benchmark else {
            return Ok(());
        };
        if let Some(table) = &mut self.table {
            benchmark.setting(line, to)?;
            return table.line(line, to);
        }
        let Some(comment) = line.trim().strip_prefix('#') else {
            return Ok(());
        };
        benchmark.setting(line, to)?;
        if let Some(columns) = columns(comment)? {
            self.table = AverageTable::new(columns, &benchmark.operation, benchmark.ranks, to)?;
        }
        Ok(())
    }

    fn is_row(&self, line: &str) -> bool {
        self.table.as_ref().is_some_and(|table| table.is_row(line))
    }

    fn end(&mut self, _: &mut Collector<'_>) -> Result<(), String> {
        *self = Self::default();
        Ok(())
    }
}

impl Benchmark {
    /// Understands the name in a title, as in `MPI-CUDA Non-blocking Allreduce Latency Test`.
    fn new(name: &str, to: &mut Collector<'_>) -> Self {
        let name = name.strip_suffix(" Test").unwrap_or(name);
        // One-sided operations are written `MPI_Put`.
        let place = name.find([' ', '_']).unwrap_or_default();
        let (library, name) = name.split_at(place);
        if let Some((_, buffers)) = library.split_once('-') {
            to.factor("buffers", buffers);
        }
        let is_one_sided = name.starts_with('_');
        let name = name.trim_start_matches([' ', '_']);
        let (name, begin) = match name.strip_prefix("Non-blocking ") {
            Some(name) => (name, "i"),
            None => (name, ""),
        };
        let without = name
            .strip_suffix(" Latency")
            .filter(|name| !name.starts_with("Multi"));
        let operation = match without.unwrap_or(name) {
            "Broadcast" => "bcast".to_owned(),
            other => match other.strip_prefix("All-to-All") {
                // Followed by nothing, v or w, and maybe by `Personalized Exchange`.
                Some(rest) => format!("alltoall{}", rest.split(' ').next().unwrap_or_default()),
                None => operation_name(other),
            },
        };
        let operation = format!("{begin}{operation}");
        let times = match operation.as_str() {
            "latency" => Some("half of a round trip"),
            other if other.ends_with("bandwidth") => Some("time per message, from MB/s"),
            _ => None,
        };
        if let Some(times) = times {
            to.fact(&format!("times of {operation}"), times);
        }
        Self {
            operation,
            ranks: (times.is_some() || is_one_sided).then_some(2),
        }
    }

    /// Reads a line that may name a setting, as in `# Datatype: MPI_CHAR.`
    fn setting(&self, line: &str, to: &mut Collector<'_>) -> Result<(), String> {
        let setting = line
            .trim()
            .strip_prefix("# ")
            .and_then(|line| line.split_once(": "));
        if let Some((name, value)) = setting
            && SETTINGS.contains(&name)
        {
            let name = format!("{} of {}", name.to_ascii_lowercase(), self.operation);
            to.factor_of_operation(&name, value.trim_end_matches('.'))?;
        }
        Ok(())
    }
}

/// Makes the name of an operation from other words.
fn operation_name(words: &str) -> String {
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let words = words.split(odd).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Reads the line of the columns; `None` if it is another one.
fn columns(line: &str) -> Result<Option<Vec<Column>>, String> {
    let names: String = line.split_whitespace().collect();
    let (mut rest, mut found) = (names.as_str(), Vec::new());
    while !rest.is_empty() {
        let next = COLUMNS
            .iter()
            .find_map(|(name, column)| Some((column, rest.strip_prefix(name)?)));
        match next {
            Some((column, after)) => {
                found.push(*column);
                rest = after;
            }
            None if found.is_empty() => return Ok(None),
            None => return Err(format!("the column \"{}\" is unknown", rest.escape_debug())),
        }
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}
