//! What was measured: in a record of the launch, in a table, or as JSON.

use std::path::PathBuf;
use std::process;

use clap::Args;
use downbeat_measure::Measured;
use downbeat_records::{Factors, GroupKey, ObservationState};
use downbeat_records::{Journal, RecordFormat};
use serde::Serialize;

use super::{BenchPlan, group_of};
use crate::Failure;
use crate::machine::now;
use crate::output::{self, Table, count};
use crate::records::serialize_factors;

/// Where the results go.
#[derive(Args, Clone, Debug)]
pub struct OutputOptions {
    /// Keep all observations: a file for this launch in this folder, written as each group is done
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The name of that file, without its ending; one that was begun is gone on with [default: by the time]
    #[arg(long, value_name = "NAME", requires = "out", value_parser = launch_name)]
    launch: Option<String>,
    /// How that file is written
    #[arg(long, value_name = "FORMAT", default_value = "csv", requires = "out")]
    format: RecordFormat,
    /// Keep also observations that do not count, and in a second file the times of every rank
    #[arg(long, requires = "out")]
    raw: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// A name of a file in a folder, and nothing else.
fn launch_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.starts_with('.') || !text.chars().all(plain) => {
            Err("can have letters, digits and -_. and begins with none of these points".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// What was found so far, on rank 0; on other ranks nothing.
#[derive(Debug, Default)]
pub struct BenchResults {
    headline: String,
    factors: Factors,
    facts: Factors,
    journal: Option<Journal>,
    /// Groups that an earlier process of this launch measured.
    before: usize,
    shown: Vec<GroupSummary>,
}

/// One group as it is shown.
#[derive(Debug, Serialize)]
struct GroupSummary {
    operation: String,
    bytes: u64,
    ranks: u32,
    valid: usize,
    late: usize,
    long: usize,
    ended: String,
    elapsed_s: f64,
    /// How many of the figures are the processing's; those that follow are of interest where something is wrong.
    #[serde(skip)]
    processed: usize,
    /// The first is the one to report.
    #[serde(serialize_with = "as_object")]
    figures_ns: Vec<(String, f64)>,
}

fn as_object<S: serde::Serializer>(
    figures: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().map(|(name, nanos)| (name, nanos)))
}

/// What a JSON document of a launch begins with.
#[derive(Debug, Serialize)]
pub struct LaunchHeader<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    #[serde(serialize_with = "serialize_factors")]
    facts: &'a Factors,
}

/// Everything, as one JSON document.
#[derive(Serialize)]
struct BenchReport<'a> {
    #[serde(flatten)]
    head: LaunchHeader<'a>,
    groups: &'a [GroupSummary],
}

impl OutputOptions {
    /// Begins the record, if there is to be one. Only rank 0 does this.
    pub(super) fn begin(&self, plan: BenchPlan, seed: u64) -> Result<BenchResults, Failure> {
        let BenchPlan {
            factors,
            facts,
            headline,
            ..
        } = plan;
        let facts = facts.with("started", &now()).with("seed", &seed);
        let open = |folder: &PathBuf| {
            let name = self.launch.clone().unwrap_or_else(name_by_time);
            Journal::open(folder, &name, self.format, self.raw, &factors, &facts)
        };
        let journal = self
            .out
            .as_ref()
            .map(open)
            .transpose()
            .map_err(|why| Failure::option("--out", why))?;
        let before = journal.as_ref().map_or(0, |journal| journal.groups().len());
        Ok(BenchResults {
            headline,
            factors,
            facts,
            journal,
            before,
            shown: Vec::new(),
        })
    }

    /// Whether observations are kept in a file.
    pub fn keeps_record(&self) -> bool {
        self.out.is_some()
    }

    /// Shows everything that was measured in this launch. Only rank 0 does this.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn show(&self, results: &BenchResults) -> Result<(), Failure> {
        let report = BenchReport {
            head: results.head("downbeat.bench", 1),
            groups: &results.shown,
        };
        self.show_as(
            results,
            &report,
            &format!("{}\n\n{}", results.headline, results.table()),
        )
    }

    /// Shows what was measured before a failure, which is what the program then speaks of: half a document would be none.
    pub(super) fn show_before_failure(&self, results: &BenchResults) {
        if !self.json && !results.shown.is_empty() {
            // That it cannot be shown, too, is the lesser failure.
            let _ = self.show(results);
        }
    }

    /// Shows what was measured in this launch as one document or as this text, as it was asked for. Only rank 0 does this.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn show_as(
        &self,
        results: &BenchResults,
        report: &impl Serialize,
        text: &str,
    ) -> Result<(), Failure> {
        if self.json {
            return output::print_json(report);
        }
        let before = match results.before {
            0 => String::new(),
            groups => format!(
                "\n{} had been measured before, and {} left as they were.\n",
                count(groups, "group"),
                if groups == 1 { "was" } else { "were" }
            ),
        };
        output::print(&format!("{text}{before}"))
    }
}

/// As no other launch is named that begins in another second or is another process.
fn name_by_time() -> String {
    format!("launch-{}-{}", now().replace([':', 'Z'], ""), process::id())
}

impl BenchResults {
    /// What the results depend on.
    pub fn factors(&self) -> &Factors {
        &self.factors
    }

    /// What a document with the results begins with.
    pub fn head(&self, schema: &'static str, version: u32) -> LaunchHeader<'_> {
        LaunchHeader {
            schema,
            version,
            factors: &self.factors,
            facts: &self.facts,
        }
    }

    /// What is said above the results.
    pub fn headline(&self) -> &str {
        &self.headline
    }

    /// Whether an earlier process of this launch measured it.
    pub(super) fn has(&self, key: &GroupKey) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|journal| journal.groups().contains(key))
    }

    /// Nothing can be added to a launch that is complete.
    pub(super) fn can_have(&self, groups: &[GroupKey]) -> Result<(), Failure> {
        let complete = self.journal.as_ref().is_some_and(Journal::is_complete);
        match groups.iter().find(|key| complete && !self.has(key)) {
            Some(key) => Err(Failure::option(
                "--launch",
                format!("it is complete, without {key}"),
            )),
            None => Ok(()),
        }
    }

    /// Keeps what was measured.
    pub(super) fn add(&mut self, key: &GroupKey, measured: &Measured) -> Result<(), Failure> {
        let group = group_of(key, measured);
        if let Some(journal) = &mut self.journal {
            journal
                .append(&group, &measured.observations)
                .map_err(Failure::run)?;
        }
        let of = |state| measured.observations.count(state);
        self.shown.push(GroupSummary {
            operation: key.operation.clone(),
            bytes: key.bytes,
            ranks: key.ranks,
            valid: of(ObservationState::Valid),
            late: of(ObservationState::Late),
            long: of(ObservationState::Long),
            ended: measured.ended.to_string(),
            elapsed_s: measured.elapsed.as_secs_f64(),
            processed: measured.figures.len(),
            figures_ns: group.figures,
        });
        Ok(())
    }

    /// Everything was measured.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.journal
            .as_mut()
            .map_or(Ok(()), |journal| journal.complete().map_err(Failure::run))
    }

    /// A row for each group, with the figures of the processing.
    fn table(&self) -> String {
        let mut shown: Vec<&GroupSummary> = self.shown.iter().collect();
        shown.sort_by_key(|one| (&one.operation, one.ranks, one.bytes));
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in shown
            .iter()
            .flat_map(|one| &one.figures_ns[..one.processed])
        {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut table = Table::new(
            ["operation", "bytes", "ranks", "valid"]
                .into_iter()
                .chain(names.iter().copied()),
        );
        for one in shown {
            let figure = |name: &&str| {
                let found = one.figures_ns.iter().find(|(known, _)| known == name);
                found.map_or_else(String::new, |(_, nanos)| output::time(*nanos))
            };
            let all = one.valid + one.late + one.long;
            let valid = if one.valid == all {
                all.to_string()
            } else {
                format!("{} of {all}", one.valid)
            };
            let cells = [
                one.operation.clone(),
                one.bytes.to_string(),
                one.ranks.to_string(),
                valid,
            ];
            table.row(
                cells
                    .into_iter()
                    .chain(names.iter().map(figure))
                    .collect::<Vec<_>>(),
            );
        }
        table.render()
    }
}
