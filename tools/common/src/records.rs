//! Results of trials of synchronizations: as a table, as CSV and as JSON.

mod explained;
mod page;
mod paired;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use downbeat_clock_core::Duration;
pub use downbeat_records::Factors;
use downbeat_records::stats::Sample;
use downbeat_sync::check::RankOffset;
use downbeat_sync::{StatedError, SyncError};
use serde::Serialize;

use crate::table::Table;
use crate::text::Text;
use crate::{Failure, Trial, TrialResult, units};
pub use explained::ExplainedRuns;

/// Serializes factors as an object of names and values.
///
/// # Errors
/// Those of the serializer.
pub fn serialize_factors<S: serde::Serializer>(
    factors: &Factors,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(factors.iter())
}

/// One run of one algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Label of the algorithm.
    pub algorithm: String,
    /// Number of the run, from 1 for each algorithm.
    pub run: u32,
    /// Duration of the synchronization.
    pub duration_s: f64,
    /// Largest deviation of the offsets of any rank from its line.
    pub residual_deviation_ns: Option<f64>,
    /// Largest standard error of any rank's clock at the end of the measurements.
    pub standard_error_ns: Option<f64>,
    /// Scatter of the measurements, where nothing shows what distorts all messages of a
    /// pair of ranks alike.
    pub scatter_ns: Option<f64>,
    /// Time that an automatic synchronization needs here at least.
    pub least_s: Option<f64>,
    /// Reasons for which the clocks are worse than wanted, or took longer.
    pub warnings: Vec<String>,
    /// Stated bound of the error of every rank's clock at the end of the synchronization.
    pub half_width_ns: i64,
    /// Number of offsets that all ranks together left out.
    pub left_out: u32,
    /// Edge of a cube that is furthest from the consensus of all others, if one is far from it.
    pub far_edge: Option<FarEdgeRecord>,
    /// Checks after each wait.
    pub checks: Vec<CheckRecord>,
    /// Number of messages of the closing exchange.
    pub closing_messages: u64,
    /// Duration of the closing exchange, which is part of that of the synchronization.
    pub closing_s: f64,
    /// Duration of the comparison around cycles of ranks before it, which only shows
    /// errors.
    pub compared_s: f64,
    /// Clocks of the ranks whose true errors are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockRecord>,
}

/// Clock of a rank whose true error is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockRecord {
    /// Rank of the clock.
    pub rank: u32,
    /// Deviation of the rank's own clock from that of rank 0 before the synchronization.
    pub offset_ns: i64,
    /// Drift that the clock was given.
    pub drift_ppm: f64,
    /// Standard deviation of the residuals of the fit, if the algorithm makes one.
    pub residual_deviation_ns: Option<f64>,
    /// Stated bound of the error at the end of the synchronization.
    pub half_width_ns: i64,
    /// Number of offsets that the rank left out.
    pub left_out: u32,
    /// True error of the global clock in each check, if it is known.
    pub errors_ns: Vec<Option<i64>>,
}

/// Edge of a cube that contradicts the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FarEdgeRecord {
    /// Its ranks.
    pub ranks: [u32; 2],
    /// Difference of what it measured from what all edges together give.
    pub ns: i64,
}

/// Check after one wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckRecord {
    /// Time of the wait.
    pub after_s: f64,
    /// Number of ranks whose offset was measured.
    pub looked_at: usize,
    /// Number of those whose messages contradicted each other, so that there is no offset.
    pub contradictory: usize,
    /// Largest measured offset of a global clock to that of rank 0.
    pub largest_offset: Option<LargestDeviation>,
    /// Largest true error of any global clock, if it is known.
    pub largest_error: Option<LargestDeviation>,
    /// Number of clocks whose true error exceeds their stated bound, if it is known.
    pub beyond_bound: Option<usize>,
    /// Number of clocks whose true error exceeds twice their stated standard error, if it
    /// is known.
    pub beyond_error: Option<usize>,
}

/// True errors of all clocks after one wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrueErrors {
    /// Largest one.
    pub largest: Option<LargestDeviation>,
    /// Number of those that exceed the stated bound, if it was determined.
    pub beyond_bound: Option<usize>,
    /// Number of those that exceed twice the stated standard error, if it was determined.
    pub beyond_error: Option<usize>,
}

/// The offset or error furthest from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LargestDeviation {
    /// Value with its sign.
    pub ns: i64,
    /// Largest error of the value.
    pub half_width_ns: Option<i64>,
    /// Rank of the clock.
    pub rank: u32,
}

impl LargestDeviation {
    /// Returns the one furthest from zero; of equal ones that of the lowest rank.
    pub fn among(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter()
            .min_by_key(|one| (std::cmp::Reverse(one.ns.unsigned_abs()), one.rank))
    }

    /// Returns the offset furthest from zero, if any is known.
    pub fn of_offsets(offsets: &[RankOffset]) -> Option<Self> {
        Self::among(offsets.iter().filter_map(|offset| {
            let sample = offset.sample?;
            Some(Self {
                ns: sample.offset.as_nanos(),
                half_width_ns: sample.half_width.map(Duration::as_nanos),
                rank: offset.rank,
            })
        }))
    }
}

impl RunRecord {
    /// Creates the record of a trial on rank 0; `errors` are the true ones after each wait.
    pub fn new(trial: &Trial, run: u32, result: &TrialResult, errors: &[TrueErrors]) -> Self {
        let synchronized = &result.synchronized;
        let closing = synchronized.closing;
        let stated = |is_error| {
            let stated = result.worst.stated_error;
            let stated = stated.filter(|stated| stated.is_error() == is_error);
            stated.map(StatedError::nanos)
        };
        let check = |i: usize, after: &Duration| {
            let offsets: &[RankOffset] = result.offsets.get(i).map_or(&[], Vec::as_slice);
            CheckRecord {
                after_s: after.as_secs_f64(),
                looked_at: offsets.len(),
                contradictory: offsets
                    .iter()
                    .filter(|offset| offset.sample.is_none())
                    .count(),
                largest_offset: LargestDeviation::of_offsets(offsets),
                largest_error: errors.get(i).and_then(|errors| errors.largest),
                beyond_bound: errors.get(i).and_then(|errors| errors.beyond_bound),
                beyond_error: errors.get(i).and_then(|errors| errors.beyond_error),
            }
        };
        Self {
            algorithm: trial.algorithm.to_string(),
            run,
            duration_s: result.took.as_secs_f64(),
            residual_deviation_ns: result.worst.residual_deviation,
            standard_error_ns: stated(true),
            scatter_ns: stated(false),
            least_s: synchronized.least_time().map(Duration::as_secs_f64),
            warnings: synchronized
                .warnings()
                .map(|warning| warning.to_string())
                .collect(),
            half_width_ns: result.bound.as_nanos(),
            left_out: result.worst.left_out,
            far_edge: result.worst.far_edge.map(|edge| FarEdgeRecord {
                ranks: edge.ranks,
                ns: edge.by.as_nanos(),
            }),
            checks: trial
                .waits
                .iter()
                .enumerate()
                .map(|(i, after)| check(i, after))
                .collect(),
            closing_messages: closing.messages,
            closing_s: closing.took.as_secs_f64(),
            compared_s: closing.compared.as_secs_f64(),
            clocks: Vec::new(),
        }
    }

    /// Returns the table of the clocks whose true errors are known.
    fn clock_table(&self) -> Text {
        let times = self
            .checks
            .iter()
            .map(|check| format!("{} s", check.after_s));
        let times: Vec<String> = times.collect();
        let errors = format!("error after {}, ns", times.join(" / "));
        let mut table = Table::new(["rank", "was ahead by", "drift, ppm", "bound, ns", &errors]);
        for clock in self.clocks.iter().take(SHOWN_CLOCKS) {
            let error = |error: &Option<i64>| {
                error.map_or_else(|| "-".to_owned(), |error| format!("{error:+}"))
            };
            let errors: Vec<String> = clock.errors_ns.iter().map(error).collect();
            table.row([
                clock.rank.to_string(),
                Duration::from_nanos(clock.offset_ns).to_string(),
                format!("{:+.3}", units::without_negative_zero(clock.drift_ppm, 3)),
                clock.half_width_ns.to_string(),
                errors.join(" / "),
            ]);
        }
        let mut text = Text::default();
        text += table;
        if let Some(more @ 1..) = self.clocks.len().checked_sub(SHOWN_CLOCKS) {
            text += format!("... and {more} more (--json shows all)\n");
        }
        text
    }
}

/// Maximum number of clocks in the table.
const SHOWN_CLOCKS: usize = 16;

/// Returns the results of all ranks.
///
/// # Errors
/// The failure of the lowest rank that failed by itself, if any rank failed.
pub fn all_or_first_failure<T>(results: Vec<Result<T, SyncError>>) -> Result<Vec<T>, Failure> {
    let is_of_other = |why: &SyncError| matches!(why, SyncError::OtherRank(_));
    let failures = (0..)
        .zip(&results)
        .filter_map(|(rank, result)| Some((rank, result.as_ref().err()?)));
    match failures.min_by_key(|(rank, why)| (is_of_other(why), *rank)) {
        Some((rank, why)) => Err(Failure::Run(format!("rank {rank}: {why}"))),
        None => results
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(Failure::run),
    }
}

/// CSV file of records; each record is written at once.
#[derive(Debug)]
pub struct CsvFile {
    file: File,
    path: PathBuf,
}

const COLUMNS: &str = "algorithm,run,duration_s,residual_deviation_ns,half_width_ns,left_out,after_s,looked_at,\
                       contradictory,largest_offset_ns,largest_offset_half_width_ns,largest_offset_rank,\
                       largest_error_ns,largest_error_half_width_ns,largest_error_rank,\
                       beyond_bound,closing_messages,closing_s,far_edge_ranks,far_edge_ns,standard_error_ns,\
                       scatter_ns,least_s,beyond_error";

impl CsvFile {
    /// Creates a file, with the factors as comments and the names of the columns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, factors: &Factors) -> Result<Self, Failure> {
        Self::with_columns(path, factors, COLUMNS)
    }

    /// Creates a file with other columns, whose lines the caller [writes](Self::write).
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn with_columns(path: &Path, factors: &Factors, columns: &str) -> Result<Self, Failure> {
        let file = File::create(path)
            .map_err(|why| Failure::option("--csv", format!("{}: {why}", path.display())))?;
        let mut csv = Self {
            file,
            path: path.to_owned(),
        };
        let comments: String = factors
            .iter()
            .map(|(name, value)| format!("# {name} = {value}\n"))
            .collect();
        csv.write(&format!("{comments}{columns}\n"))?;
        Ok(csv)
    }

    /// Writes a line for each check of a record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), Failure> {
        let mut lines = String::new();
        for check in &record.checks {
            // Writing to a string cannot fail. Labels of hierarchies contain commas, hence the quotes; no label contains quotes.
            let _ = writeln!(
                lines,
                "\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                record.algorithm,
                record.run,
                record.duration_s,
                or_empty(record.residual_deviation_ns),
                record.half_width_ns,
                record.left_out,
                check.after_s,
                check.looked_at,
                check.contradictory,
                largest_columns(check.largest_offset),
                largest_columns(check.largest_error),
                or_empty(check.beyond_bound),
                record.closing_messages,
                record.closing_s,
                or_empty(
                    record
                        .far_edge
                        .map(|edge| format!("{}-{}", edge.ranks[0], edge.ranks[1]))
                ),
                or_empty(record.far_edge.map(|edge| edge.ns)),
                or_empty(record.standard_error_ns),
                or_empty(record.scatter_ns),
                or_empty(record.least_s),
                or_empty(check.beyond_error)
            );
        }
        self.write(&lines)
    }

    /// Writes lines without buffering, so that they stay even if the program is killed.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        let path = self.path.display();
        self.file
            .write_all(text.as_bytes())
            .map_err(|why| Failure::Run(format!("cannot write to {path}: {why}")))
    }
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn largest_columns(largest: Option<LargestDeviation>) -> String {
    let Some(LargestDeviation {
        ns,
        half_width_ns,
        rank,
    }) = largest
    else {
        return ",,".to_owned();
    };
    format!("{ns},{},{rank}", or_empty(half_width_ns))
}

/// Returns the labels of all algorithms, in the order of their first runs.
fn labels(records: &[RunRecord]) -> Vec<&str> {
    distinct(records.iter().map(|record| record.algorithm.as_str()))
}

/// Returns the values that differ, in the order of their first occurrence.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Returns the table of all runs: a row for each algorithm and wait.
fn table(records: &[RunRecord]) -> Table {
    let runs = records.iter().map(|record| record.run).max().unwrap_or(0);
    let heading = |value: &str| match runs {
        0 | 1 => value.to_owned(),
        _ => format!("{value}, median / worst"),
    };
    let any = |is_known: fn(&CheckRecord) -> bool| {
        let mut checks = records.iter().flat_map(|record| &record.checks);
        checks.any(is_known)
    };
    let has_errors = any(|check| check.largest_error.is_some());
    let has_offsets = any(|check| check.largest_offset.is_some()) || !has_errors;
    let rows = labels(records).into_iter().flat_map(|label| {
        let of_label = |record: &&RunRecord| record.algorithm == label;
        let runs: Vec<&RunRecord> = records.iter().filter(of_label).collect();
        let checks = runs.first().map_or(0, |run| run.checks.len());
        (0..checks).map(move |check| CheckedRuns {
            runs: runs.clone(),
            check,
        })
    });
    let mut table = Table::of(rows)
        .column("algorithm", |row| {
            row.at_first(|runs| runs[0].algorithm.clone())
        })
        .column("took", |row| {
            row.at_first(|runs| median_seconds(runs, |run| run.duration_s))
        })
        .column("closing exchange", |row| {
            row.at_first(|runs| {
                let took = median_seconds(runs, |run| run.closing_s);
                format!("{took}, {} messages", runs[0].closing_messages)
            })
        })
        .column(&heading("bound at the end"), |row| {
            row.at_first(|runs| spread(runs.iter().map(|run| run.half_width_ns as f64)))
        })
        .column(&heading("standard error"), |row| {
            row.at_first(|runs| {
                let errors = spread(runs.iter().filter_map(|run| run.standard_error_ns));
                let mut scatters = runs.iter().filter_map(|run| run.scatter_ns).peekable();
                match scatters.peek() {
                    Some(_) => format!("scatter {}", spread(scatters)),
                    None => errors,
                }
            })
        })
        .column("after", |row| {
            format!("{} s", row.runs[0].checks[row.check].after_s)
        });
    if has_offsets {
        table = table.column(&heading("largest offset"), |row| {
            row.spread(|check| check.largest_offset)
        });
    }
    if has_errors {
        table = table.column(&heading("largest true error"), |row| {
            row.spread(|check| check.largest_error)
        });
    }
    table.table()
}

/// Check with this number of the runs of an algorithm, of which there is one.
struct CheckedRuns<'a> {
    runs: Vec<&'a RunRecord>,
    check: usize,
}

impl CheckedRuns<'_> {
    /// Writes what the checks of an algorithm share, in the row of the first.
    fn at_first(&self, text: impl Fn(&[&RunRecord]) -> String) -> String {
        match self.check {
            0 => text(&self.runs),
            _ => String::new(),
        }
    }

    /// Writes the median and the worst of a deviation.
    fn spread(&self, value: fn(&CheckRecord) -> Option<LargestDeviation>) -> String {
        spread(self.runs.iter().filter_map(|run| {
            let deviation = value(run.checks.get(self.check)?)?;
            Some(deviation.ns.unsigned_abs() as f64)
        }))
    }
}

fn median_seconds(runs: &[&RunRecord], seconds: fn(&RunRecord) -> f64) -> String {
    let median = median(runs.iter().map(|run| seconds(run)).collect());
    median.map_or_else(String::new, |seconds| time(seconds * 1e9))
}

/// Writes the median and the worst of values in nanoseconds.
fn spread(all: impl Iterator<Item = f64>) -> String {
    let all: Vec<f64> = all.collect();
    let worst = all.iter().copied().reduce(f64::max);
    match (all.len(), worst, median(all)) {
        (1, Some(only), _) => time(only),
        (_, Some(worst), Some(median)) => format!("{} / {}", time(median), time(worst)),
        _ => "-".to_owned(),
    }
}

/// Returns the median, `None` if there are no values.
pub fn median(mut all: Vec<f64>) -> Option<f64> {
    Sample::new(&mut all).ok().map(|sample| sample.median())
}

fn time(nanos: f64) -> String {
    Duration::from_nanos_f64(nanos).map_or_else(String::new, |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(ns: i64, rank: u32) -> LargestDeviation {
        LargestDeviation {
            ns,
            half_width_ns: Some(3),
            rank,
        }
    }

    pub(super) fn record(algorithm: &str, run: u32, offset: i64, error: Option<i64>) -> RunRecord {
        let check = |after_s, factor| CheckRecord {
            after_s,
            looked_at: 3,
            contradictory: 0,
            largest_offset: Some(largest(offset * factor, 2)),
            largest_error: error.map(|ns| largest(ns * factor, 1)),
            beyond_bound: error.map(|_| 0),
            beyond_error: None,
        };
        RunRecord {
            algorithm: algorithm.to_owned(),
            run,
            duration_s: 0.25,
            residual_deviation_ns: None,
            standard_error_ns: None,
            scatter_ns: None,
            least_s: None,
            warnings: Vec::new(),
            half_width_ns: 40,
            left_out: 1,
            far_edge: None,
            checks: vec![check(0.0, 1), check(10.0, 1_000)],
            closing_messages: 66,
            closing_s: 0.002,
            compared_s: 0.0,
            clocks: Vec::new(),
        }
    }

    #[test]
    fn the_largest_deviation_is_furthest_from_zero() {
        assert_eq!(
            LargestDeviation::among([largest(5, 0), largest(-9, 3), largest(9, 1), largest(0, 2)]),
            Some(largest(9, 1))
        );
        assert_eq!(LargestDeviation::among([]), None);
        assert_eq!(
            LargestDeviation::among([largest(i64::MIN, 0), largest(i64::MAX, 1)]),
            Some(largest(i64::MIN, 0))
        );
    }

    #[test]
    fn a_table_has_a_row_for_each_algorithm_and_wait() {
        let runs = [
            record("b", 1, 4, Some(1)),
            record("a", 1, 7, Some(1)),
            record("b", 2, -20, Some(1)),
            record("a", 2, 7, Some(1)),
            record("b", 3, 6, Some(1)),
        ];
        let shown = table(&runs).to_string();
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split("  ").filter(|s| !s.is_empty()).collect())
            .collect();
        assert_eq!(lines.len(), 5, "{shown}");
        assert_eq!(
            lines[1].iter().map(|cell| cell.trim()).collect::<Vec<_>>(),
            [
                "b",
                "250.000 ms",
                "2.000 ms, 66 messages",
                "40 ns / 40 ns",
                "-",
                "0 s",
                "6 ns / 20 ns",
                "1 ns / 1 ns"
            ]
        );
        assert_eq!(
            lines[4].iter().map(|cell| cell.trim()).collect::<Vec<_>>(),
            ["10 s", "7.000 us / 7.000 us", "1.000 us / 1.000 us"]
        );
        let one = table(&[record("a", 1, 7, None)]).to_string();
        assert!(
            one.contains("7.000 us") && !one.contains("true error") && !one.contains("median"),
            "{one}"
        );
        assert_eq!(table(&[]).to_string().lines().count(), 1);
    }

    #[test]
    fn a_line_of_the_file_has_as_many_fields_as_there_are_columns() {
        let path = std::env::temp_dir().join(format!("downbeat-records-{}", std::process::id()));
        let mut csv = CsvFile::create(
            &path,
            &Factors::default().with("ranks", &4).with("seed", &1),
        )
        .unwrap();
        csv.append(&record("h2hca(none,prop)", 1, -4, None))
            .unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines[..2], ["# ranks = 4", "# seed = 1"]);
        assert_eq!(
            lines[3],
            "\"h2hca(none,prop)\",1,0.25,,40,1,0,3,0,-4,3,2,,,,,66,0.002,,,,,,"
        );
        // One comma of the label is in quotes.
        assert!(
            lines[3..]
                .iter()
                .all(|line| line.matches(',').count() == COLUMNS.matches(',').count() + 1)
        );
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let failure =
            CsvFile::create(Path::new("/nonexistent/x.csv"), &Factors::default()).unwrap_err();
        assert!(
            matches!(failure, Failure::Input(why) if why.starts_with("--csv: /nonexistent/x.csv: "))
        );
    }

    #[test]
    fn the_rank_that_failed_by_itself_is_reported() {
        let found = vec![
            Err(SyncError::OtherRank(2)),
            Ok(()),
            Err(SyncError::DifferentAlgorithms),
        ];
        let failure = all_or_first_failure(found).unwrap_err();
        assert!(matches!(failure, Failure::Run(why) if why.starts_with("rank 2: ")));
        assert_eq!(all_or_first_failure(vec![Ok(1), Ok(2)]).unwrap(), [1, 2]);
    }
}
