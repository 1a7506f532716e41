//! Report on the imbalance of barriers: as tables, and as one JSON document.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use downbeat_common::bench::{BenchResults, LaunchHeader};
use downbeat_common::output::{percent, time};
use downbeat_common::{Table, Text, units};
use downbeat_measure::imbalance::Imbalance;
use downbeat_measure::processing::Figure;
use serde::Serialize;

use super::job::ImbalanceJob;

/// Results of all measurements, on rank 0.
#[derive(Debug, Default)]
pub(super) struct ImbalanceResults {
    imbalance: Vec<BarrierImbalance>,
    latency: Vec<OperationLatency>,
}

/// Imbalance of a barrier.
#[derive(Debug, Serialize)]
struct BarrierImbalance {
    barrier: String,
    valid: usize,
    late: usize,
    /// `None` if no round was valid.
    #[serde(flatten)]
    leaving: Option<BarrierExits>,
}

#[derive(Debug, Serialize)]
struct BarrierExits {
    /// Time from the first rank that leaves to the last.
    imbalance_ns: ImbalanceQuantiles,
    /// Median run-time of the barrier itself.
    run_time_ns: f64,
    /// Rank that left last most often.
    leaves_last: usize,
    /// Share of the rounds in which it left last.
    leaves_last_share: f64,
    /// Number of rounds in which each rank left last.
    left_last: Vec<u64>,
}

impl BarrierExits {
    /// Returns the exits from a barrier with the figures of its imbalance.
    fn new(imbalance: &Imbalance, figures: &[Figure]) -> Self {
        let nanos = |name| {
            let figure = figures.iter().find(|figure| figure.name == name);
            figure.map_or(0.0, |figure| figure.nanos)
        };
        let (leaves_last, leaves_last_share) = imbalance.usually_last();
        Self {
            imbalance_ns: ImbalanceQuantiles {
                median: nanos("median"),
                q1: nanos("q1"),
                q3: nanos("q3"),
                p95: nanos("p95"),
                max: nanos("max"),
            },
            run_time_ns: nanos(Imbalance::RUN_TIME),
            leaves_last,
            leaves_last_share,
            left_last: imbalance.left_last().to_vec(),
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct ImbalanceQuantiles {
    pub(super) median: f64,
    pub(super) q1: f64,
    pub(super) q3: f64,
    pub(super) p95: f64,
    max: f64,
}

/// Latency of an operation behind a barrier, as a method reports it.
#[derive(Debug, Serialize)]
struct OperationLatency {
    method: String,
    barrier: String,
    operation: String,
    bytes: u64,
    valid: usize,
    late: usize,
    /// Name of the figure that the method reports.
    figure: &'static str,
    /// Value of that figure; `None` if no observation was valid.
    latency_ns: Option<f64>,
}

/// Latency that a method reports behind a barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedLatency<'a> {
    pub(super) method: &'a str,
    pub(super) barrier: &'a str,
    pub(super) bytes: u64,
    pub(super) nanos: f64,
}

/// Report as one JSON document.
#[derive(Serialize)]
pub(super) struct ImbalanceReport<'a> {
    #[serde(flatten)]
    head: LaunchHeader<'a>,
    barriers: &'a [BarrierImbalance],
    latencies: &'a [OperationLatency],
}

impl ImbalanceResults {
    /// Adds a measurement with its numbers of valid and of late rounds, and its figures; none without a valid round. That of a barrier
    /// has an imbalance.
    pub(super) fn add(
        &mut self,
        job: &ImbalanceJob,
        [valid, late]: [usize; 2],
        figures: &[Figure],
        imbalance: Option<&Imbalance>,
    ) {
        let barrier = job.subject.barrier.to_string();
        let Some(timing) = job.subject.timing else {
            let leaving = imbalance.map(|imbalance| BarrierExits::new(imbalance, figures));
            return self.imbalance.push(BarrierImbalance {
                barrier,
                valid,
                late,
                leaving,
            });
        };
        let operation = job.key.operation.split('/').next().unwrap_or_default();
        let reported = figures.first();
        self.latency.push(OperationLatency {
            method: timing.to_string(),
            barrier,
            operation: operation.to_owned(),
            bytes: job.key.bytes,
            valid,
            late,
            figure: reported.map_or("", |figure| figure.name),
            latency_ns: reported.map(|figure| figure.nanos),
        });
    }

    /// Sorts the results by the order of the options instead of that of the measurements.
    pub(super) fn sort_by_jobs(&mut self, jobs: &[ImbalanceJob]) {
        let barrier = |name: &str| {
            jobs.iter()
                .position(|job| job.subject.barrier.to_string() == name)
        };
        let method = |name: &str| {
            jobs.iter()
                .position(|job| job.subject.timing.is_some_and(|t| t.to_string() == name))
        };
        self.imbalance.sort_by_key(|one| barrier(&one.barrier));
        self.latency
            .sort_by_key(|one| (method(&one.method), barrier(&one.barrier), one.bytes));
    }

    pub(super) fn report<'a>(&'a self, results: &'a BenchResults) -> ImbalanceReport<'a> {
        let (barriers, latencies) = (&self.imbalance, &self.latency);
        ImbalanceReport {
            head: results.head("downbeat.imbalance", 1),
            barriers,
            latencies,
        }
    }

    pub(super) fn text(&self, results: &BenchResults) -> Text {
        let (headline, factors) = (results.headline(), results.factors());
        let mut text = Text::from(format!(
            "{headline}, synchronized by {}\n",
            factors.get("sync").unwrap_or_default()
        ));
        // Variables with which a user configured the barriers of the library.
        for (name, value) in factors
            .iter()
            .filter(|(name, _)| name.to_ascii_lowercase().contains("barrier"))
        {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} = {value}");
        }
        if !self.imbalance.is_empty() {
            text += "\nImbalance: time from the first rank that leaves a barrier to the last:\n\n";
            text += self.barriers();
        }
        if let Some(title) = self.latency_title() {
            text += format!("\n{title}, as each method reports it behind each barrier:\n\n");
            text += self.latencies();
            if self.latency.iter().any(|one| one.method == "round-time") {
                text += "\nround-time has no barrier: its values differ by chance.\n";
            }
        }
        text
    }

    /// Returns the barriers of which rounds were valid.
    pub(super) fn quantiles(&self) -> impl Iterator<Item = (&str, ImbalanceQuantiles)> {
        self.imbalance.iter().filter_map(|one| {
            let leaving = one.leaving.as_ref()?;
            Some((&*one.barrier, leaving.imbalance_ns))
        })
    }

    /// Returns the latencies that methods report behind barriers.
    pub(super) fn reported(&self) -> impl Iterator<Item = ReportedLatency<'_>> {
        self.latency.iter().filter_map(|one| {
            Some(ReportedLatency {
                method: &one.method,
                barrier: &one.barrier,
                bytes: one.bytes,
                nanos: one.latency_ns?,
            })
        })
    }

    /// Returns the operation whose latency was measured, if one was, with the size if there is only one.
    pub(super) fn latency_title(&self) -> Option<String> {
        let operation = &self.latency.first()?.operation;
        Some(match self.sizes()[..] {
            [bytes] => format!("Latency of {operation}, {bytes} bytes"),
            _ => format!("Latency of {operation}"),
        })
    }

    /// Returns the sizes of its messages, ascending.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let sizes: BTreeSet<u64> = self.latency.iter().map(|one| one.bytes).collect();
        sizes.into_iter().collect()
    }

    pub(super) fn barriers(&self) -> Table {
        let headings = [
            "barrier",
            "valid",
            "of",
            "median",
            "q1",
            "q3",
            "p95",
            "max",
            "barrier takes",
            "leaves last",
        ];
        let mut table = Table::new(headings);
        for one in &self.imbalance {
            let cells = [
                one.barrier.clone(),
                units::count(one.valid as u64),
                units::count((one.valid + one.late) as u64),
            ];
            let leaving = one.leaving.as_ref().map_or_else(Vec::new, |leaving| {
                let ImbalanceQuantiles {
                    median,
                    q1,
                    q3,
                    p95,
                    max,
                } = leaving.imbalance_ns;
                let times = [median, q1, q3, p95, max, leaving.run_time_ns].map(time);
                let last = format!(
                    "rank {} ({})",
                    leaving.leaves_last,
                    percent(leaving.leaves_last_share)
                );
                times.into_iter().chain([last]).collect()
            });
            table.row(cells.into_iter().chain(leaving).collect::<Vec<_>>());
        }
        table
    }

    /// Returns a table with a row for each barrier and size, and a column for each method.
    pub(super) fn latencies(&self) -> Table {
        let mut methods: Vec<(&str, &str)> = Vec::new();
        let mut rows: Vec<(&str, u64)> = Vec::new();
        for one in &self.latency {
            match methods.iter_mut().find(|(method, _)| *method == one.method) {
                Some((_, figure)) if figure.is_empty() => *figure = one.figure,
                Some(_) => {}
                None => methods.push((&one.method, one.figure)),
            }
            if !rows.contains(&(&one.barrier, one.bytes)) {
                rows.push((&one.barrier, one.bytes));
            }
        }
        let headings = methods.iter().map(|(method, figure)| match *figure {
            "" => (*method).to_owned(),
            figure => format!("{method} {figure}"),
        });
        let headings: Vec<String> = headings.collect();
        let has_sizes = self.sizes().len() > 1;
        let key = ["barrier", "bytes"]
            .into_iter()
            .take(1 + usize::from(has_sizes));
        let headings = key.chain(headings.iter().map(String::as_str));
        let mut table = Table::new(headings).named_by(1 + usize::from(has_sizes));
        for (barrier, bytes) in rows {
            let cells = methods.iter().map(|(method, _)| {
                let is_cell = |one: &&OperationLatency| {
                    (&*one.method, &*one.barrier, one.bytes) == (*method, barrier, bytes)
                };
                let found = self.latency.iter().find(is_cell);
                found
                    .and_then(|one| one.latency_ns)
                    .map_or_else(|| "-".to_owned(), time)
            });
            let bytes = has_sizes.then(|| bytes.to_string());
            let key = [barrier.to_owned()].into_iter().chain(bytes);
            table.row(key.chain(cells).collect::<Vec<_>>());
        }
        table
    }
}
