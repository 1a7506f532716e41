//! Runs with their explanation, in all forms in which commands show them.

use serde::Serialize;

use super::paired::PairedRuns;
use super::{Factors, RunRecord, page, serialize_factors, table};
use crate::page::PageOptions;
use crate::{Failure, PrintOptions, Text};

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
        page.write_or(
            title,
            || page::page(runs, explanation.lines()),
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
                    text += PairedRuns::new(runs).text();
                    text
                })
            },
        )
    }
}
