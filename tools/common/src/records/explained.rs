//! Runs with their explanation, in all forms in which commands show them.

use serde::Serialize;

use super::paired::PairedRuns;
use super::{Factors, FarEdgeRecord, RunRecord, labels, page, serialize_factors, table};
use crate::output::count;
use crate::page::PageOptions;
use crate::{Failure, PrintOptions, Text, units};

/// Results of all runs as one JSON document.
#[derive(Debug, Serialize)]
struct SyncRunsReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    runs: &'a [RunRecord],
    /// Comparisons of each algorithm with the first.
    comparisons: PairedRuns,
}

/// Runs with what a reader must know about them.
#[derive(Clone, Copy, Debug)]
pub struct ExplainedRuns<'a> {
    /// Machine, number of runs, and seed.
    pub title: &'a str,
    /// Lines below the results.
    pub explanation: &'a str,
    /// Factors on which the results depend.
    pub factors: &'a Factors,
    /// Runs, in their order.
    pub runs: &'a [RunRecord],
}

impl ExplainedRuns<'_> {
    /// Writes the runs as a page, as one JSON document, or as tables, in the form that the options name.
    ///
    /// # Errors
    /// If a file or standard output cannot be written.
    pub fn show(&self, page: &PageOptions, print: PrintOptions) -> Result<(), Failure> {
        let Self {
            title,
            explanation,
            factors,
            runs,
        } = *self;
        let far = far_edges(runs) + &warnings(runs);
        page.write_or(
            title,
            || page::page(runs, explanation.lines().chain(far.lines())),
            || {
                let document = || SyncRunsReport {
                    schema: "downbeat.sync_runs",
                    version: 1,
                    factors,
                    runs,
                    comparisons: PairedRuns::new(runs),
                };
                print.print(document, || {
                    let mut text = Text::from(format!("{title}\n\n"));
                    text += table(runs);
                    text += format!("\n{explanation}");
                    text += far.clone();
                    text += PairedRuns::new(runs).text();
                    if let [run] = runs
                        && !run.clocks.is_empty()
                    {
                        text += "\n";
                        text += run.clock_table();
                    }
                    text
                })
            },
        )
    }
}

/// Returns a line for each algorithm in whose runs an edge of a cube was far from the consensus of all others.
fn far_edges(runs: &[RunRecord]) -> String {
    let line = |label: &str| {
        let of_label = runs.iter().filter(|run| run.algorithm == label);
        let far: Vec<FarEdgeRecord> = of_label.filter_map(|run| run.far_edge).collect();
        let FarEdgeRecord { ranks, ns } = *far.iter().max_by_key(|edge| edge.ns.unsigned_abs())?;
        let [first, second] = ranks;
        let by = units::time(ns.unsigned_abs() as f64);
        let runs = count(far.len(), "run");
        Some(format!(
            "{label}: in {runs} an edge contradicted all others and hardly counted, most that of ranks {first} and {second}, by {by}: \
             one direction of its path takes longer, or a clock is unsteady.\n"
        ))
    };
    labels(runs).into_iter().filter_map(line).collect()
}

/// Returns a line for each warning of an algorithm, as its first run has it.
fn warnings(runs: &[RunRecord]) -> String {
    let line = |label: &str| {
        let of_label = runs.iter().filter(|run| run.algorithm == label);
        let warned = of_label.filter(|run| !run.warnings.is_empty());
        let warned: Vec<&RunRecord> = warned.collect();
        let first = warned.first()?;
        let runs = count(warned.len(), "run");
        Some(format!("{label}, {runs}: {}.\n", first.warnings.join("; ")))
    };
    labels(runs).into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::record;

    #[test]
    fn the_furthest_edge_of_each_algorithm_is_named() {
        let with = |run, far: Option<(u32, i64)>| RunRecord {
            far_edge: far.map(|(rank, ns)| FarEdgeRecord {
                ranks: [rank, 9],
                ns,
            }),
            ..record("cube/9/9", run, 1, None)
        };
        let runs = [
            with(1, Some((3, 500))),
            with(2, None),
            with(3, Some((5, -2_500))),
        ];
        let text = far_edges(&runs);
        assert!(
            text.contains("in 2 runs") && text.contains("ranks 5 and 9, by 2.500 us"),
            "{text}"
        );
        assert_eq!(far_edges(&runs[1..2]), "");
    }
}
