//! Output of measurements: a record of the launch, a table, or JSON.

use std::path::{Path, PathBuf};
use std::process;

use clap::Args;
use downbeat_measure::{ClockChecks, Measurement};
use downbeat_records::{Factors, GroupKey, Journal, MeasuredGroup, ObservationState, RecordFormat};
use serde::Serialize;

use super::notes::{failure, notes, nothing_valid};
use super::raw::unopened;
use super::summary::{GroupSummary, LeftOut};
use super::transfer::{Transfer, TransferColumn};
use super::{BenchPlan, GroupOutcome};
use crate::Failure;
use crate::cli::FactorOptions;
use crate::machine::now;
use crate::output::{self, count};
use crate::records::serialize_factors;
use crate::table::Table;
use crate::text::{PrintOptions, Text};
use crate::units;

/// Options for the output of the results.
#[derive(Args, Clone, Debug)]
pub struct OutputOptions {
    /// Record all observations in a file for this launch in this directory, group by group
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name of that file without extension; an incomplete one is resumed [default: derived from the time]
    #[arg(long, value_name = "NAME", requires = "out", value_parser = launch_name)]
    launch: Option<String>,
    /// Format of that file: csv, or parquet in programs with that feature
    #[arg(
        long = "record-format",
        value_name = "FORMAT",
        default_value = "csv",
        requires = "out"
    )]
    record_format: RecordFormat,
    /// Also record invalid observations, and the times of every rank in a second file, NAME.raw.csv; those of ranks on other nodes in
    /// NAME.node1.raw.csv and so on, which are written there
    #[arg(long, requires = "out")]
    raw: bool,
    #[command(flatten)]
    factors: FactorOptions,
    /// Form of the results on standard output.
    #[command(flatten)]
    pub print: PrintOptions,
}

/// Parses a file name without directories.
fn launch_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "" => Err("must not be empty".to_owned()),
        _ if text.starts_with('.') || !text.chars().all(plain) => {
            Err("may only contain letters, digits and -_. and must not begin with a dot".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Results of a launch, on rank 0; empty on other ranks.
#[derive(Debug, Default)]
pub struct BenchResults {
    headline: String,
    factors: Factors,
    facts: Factors,
    journal: Option<Journal>,
    /// Number of groups that an earlier process of this launch measured.
    resumed: usize,
    groups: Vec<GroupSummary>,
}

/// Header of a JSON document of a launch.
#[derive(Debug, Serialize)]
pub struct LaunchHeader<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    #[serde(serialize_with = "serialize_factors")]
    facts: &'a Factors,
}

/// Results as one JSON document.
#[derive(Serialize)]
struct BenchReport<'a> {
    #[serde(flatten)]
    head: LaunchHeader<'a>,
    groups: &'a [GroupSummary],
}

impl OutputOptions {
    /// Returns the folder of the record, if one is wanted.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.out.as_deref()
    }

    /// Opens the record, if one is wanted. Only rank 0 calls this.
    pub(super) fn begin<T>(&self, plan: BenchPlan<T>, seed: u64) -> Result<BenchResults, Failure> {
        let BenchPlan {
            factors,
            facts,
            headline,
            ..
        } = plan;
        let factors = self.factors.add_to(factors, " already")?;
        let facts = facts.with("started", &now()).with("seed", &seed);
        let open = |directory: &PathBuf| {
            let name = self.launch.clone().unwrap_or_else(name_by_time);
            Journal::open(
                directory,
                &name,
                self.record_format,
                self.raw,
                &factors,
                &facts,
            )
        };
        let journal = self.out.as_ref().map(open).transpose().map_err(unopened)?;
        let resumed = journal.as_ref().map_or(0, |journal| journal.groups().len());
        Ok(BenchResults {
            headline,
            factors,
            facts,
            journal,
            resumed,
            groups: Vec::new(),
        })
    }

    /// Shows the results of this launch. Only rank 0 calls this.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn show(&self, results: &BenchResults) -> Result<(), Failure> {
        let report = BenchReport {
            head: results.head("downbeat.bench", 1),
            groups: &results.groups,
        };
        let mut text = Text::from(format!("{}\n", results.headline));
        if !results.groups.is_empty() {
            text += "\n";
            text += table(&results.sorted_groups());
        }
        self.show_as(results, &report, text)
    }

    /// Shows the results before a failure as text. Nothing is shown as JSON, since the document would be incomplete.
    pub(super) fn show_before_failure(&self, results: &BenchResults) {
        if !self.print.json && !results.groups.is_empty() {
            // The first failure is more important than one of the output.
            let _ = self.show(results);
        }
    }

    /// Shows the results of this launch as this document or as this text, depending on the options. Only rank 0 calls this.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn show_as(
        &self,
        results: &BenchResults,
        report: &impl Serialize,
        mut text: Text,
    ) -> Result<(), Failure> {
        if results.resumed > 0 {
            text += format!(
                "\n{} had been measured before and {} kept.\n",
                count(results.resumed, "group"),
                if results.resumed == 1 { "was" } else { "were" }
            );
        }
        text += notes(&results.groups);
        self.print.print(|| report, || text)
    }
}

/// Returns a name that differs from those of launches by other processes or in other seconds.
fn name_by_time() -> String {
    format!("launch-{}-{}", now().replace([':', 'Z'], ""), process::id())
}

impl BenchResults {
    /// Returns the factors on which the results depend.
    pub fn factors(&self) -> &Factors {
        &self.factors
    }

    /// Returns the header of a document with the results.
    pub fn head(&self, schema: &'static str, version: u32) -> LaunchHeader<'_> {
        LaunchHeader {
            schema,
            version,
            factors: &self.factors,
            facts: &self.facts,
        }
    }

    /// Returns the headline of the results.
    pub fn headline(&self) -> &str {
        &self.headline
    }

    /// Returns the journal of the record, if one is wanted.
    pub(super) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    pub(super) fn journal_mut(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// Returns true if an earlier process of this launch measured the group.
    pub(super) fn has(&self, key: &GroupKey) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|journal| journal.groups().contains(key))
    }

    /// Checks that a complete launch misses none of the groups: nothing can be added to it.
    pub(super) fn check_missing(&self, groups: &[&GroupKey]) -> Result<(), Failure> {
        let complete = self.journal.as_ref().is_some_and(Journal::is_complete);
        match groups.iter().find(|key| complete && !self.has(key)) {
            Some(key) => Err(Failure::option(
                "--launch",
                format!("the launch is complete, without {key}"),
            )),
            None => Ok(()),
        }
    }

    /// Adds the outcome of a group, with figures of the machine.
    ///
    /// A group of which no observation is valid is not recorded. A failed operation is stated in the
    /// record when that is complete.
    pub(super) fn add(
        &mut self,
        key: &GroupKey,
        outcome: GroupOutcome,
        machine: Vec<(String, f64)>,
    ) -> Result<(), Failure> {
        match outcome {
            GroupOutcome::Measured(measured) => self.add_measured(key, &measured, machine)?,
            GroupOutcome::NothingValid(counts) => {
                self.groups.push(GroupSummary::invalid(key, counts));
            }
            GroupOutcome::Failed(why) => {
                if let Some(journal) = &mut self.journal {
                    journal.add_final_fact(&format!("failure of {key}"), &why);
                }
                self.groups.push(GroupSummary {
                    failure: Some(why),
                    ..GroupSummary::invalid(key, [0; 3])
                });
            }
        }
        Ok(())
    }

    /// Records a measurement.
    fn add_measured(
        &mut self,
        key: &GroupKey,
        measured: &Measurement,
        machine: Vec<(String, f64)>,
    ) -> Result<(), Failure> {
        let of_processing = measured.figures.iter();
        let of_processing = of_processing.map(|figure| (figure.name, figure.nanos));
        let of_clock = measured.clock_checks.iter().flat_map(ClockChecks::figures);
        let details = measured.details.iter().copied().chain(of_clock);
        let details = details.map(|(name, time)| (name, time.as_nanos() as f64));
        let figures = of_processing.chain(details);
        let figures = figures.map(|(name, nanos)| (name.to_owned(), nanos));
        let group = MeasuredGroup {
            key: key.clone(),
            // The journal takes both from the observations.
            nanos: Vec::new(),
            counts: Vec::new(),
            figures: figures.chain(machine).collect(),
        };
        if let Some(journal) = &mut self.journal {
            if measured.made as usize > measured.observations.len() {
                journal.add_fact(&format!("calls of {key}"), &measured.made.to_string());
            }
            for (name, value) in &measured.facts {
                journal.add_fact(&format!("{name} of {key}"), value);
            }
            journal
                .append(&group, &measured.observations)
                .map_err(Failure::run)?;
        }
        let count = |state| measured.observations.count(state);
        self.groups.push(GroupSummary {
            operation: key.operation.clone(),
            bytes: key.bytes,
            ranks: key.ranks,
            valid: count(ObservationState::Valid),
            late: count(ObservationState::Late),
            long: count(ObservationState::Long),
            drifted: count(ObservationState::Drifted),
            made: measured.made,
            effective: measured.effective.ok(),
            no_interval: measured.no_interval.map(|why| why.to_string()),
            failure: None,
            ended: measured.stop_reason.to_string(),
            elapsed_s: measured.elapsed.as_secs_f64(),
            processed: measured.figures.len(),
            transfer: measured
                .figures
                .first()
                .and_then(|figure| Transfer::of(key, figure.nanos, &self.factors))
                .or_else(|| Transfer::of_overlap(measured)),
            left_out: LeftOut::of(&measured.observations),
            synchronizations: measured.clock_checks.map(|checks| checks.synchronizations),
            figures_ns: group.figures,
        });
        Ok(())
    }

    /// Fails if an operation failed, with the first reason: after the results of the others were shown. Only rank 0 calls this.
    ///
    /// # Errors
    /// If an operation failed.
    pub fn check_failed(&self) -> Result<(), Failure> {
        let mut failed = self.groups.iter().filter_map(failure);
        let Some(first) = failed.next() else {
            return Ok(());
        };
        Err(Failure::Run(match failed.count() {
            0 => first,
            others => format!("{first} ({} failed, too)", count(others, "other group")),
        }))
    }

    /// Fails if none of the groups has a valid observation, with the reason of the first.
    pub(super) fn check_valid(&self) -> Result<(), Failure> {
        if self.resumed > 0 || self.groups.iter().any(|group| group.valid > 0) {
            return Ok(());
        }
        self.check_failed()?;
        let why = self.groups.first().and_then(nothing_valid);
        why.map_or(Ok(()), |why| Err(Failure::Run(why)))
    }

    /// Adds a fact of this launch, which the record states at its end.
    pub(super) fn add_final_fact(&mut self, name: &str, value: &str) {
        self.facts = std::mem::take(&mut self.facts).with(name, &value);
        if let Some(journal) = &mut self.journal {
            journal.add_final_fact(name, value);
        }
    }

    /// Completes the record.
    pub(super) fn complete(&mut self) -> Result<(), Failure> {
        self.journal
            .as_mut()
            .map_or(Ok(()), |journal| journal.complete().map_err(Failure::run))
    }

    /// Returns the groups by operation, ranks and size.
    fn sorted_groups(&self) -> Vec<&GroupSummary> {
        let mut groups: Vec<&GroupSummary> = self.groups.iter().collect();
        groups.sort_by_key(|one| (&one.operation, one.ranks, one.bytes));
        groups
    }
}

/// Returns a table with a row for each group and the figures of the processing.
fn table(groups: &[&GroupSummary]) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in groups
        .iter()
        .flat_map(|one| &one.figures_ns[..one.processed])
    {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let transfers: Vec<&TransferColumn> = Transfer::COLUMNS
        .iter()
        .filter(|(_, cell)| {
            groups
                .iter()
                .any(|one| one.transfer.as_ref().and_then(cell).is_some())
        })
        .collect();
    let mut table = Table::new(
        ["operation", "bytes", "ranks", "valid"]
            .into_iter()
            .chain(names.iter().copied())
            .chain(transfers.iter().map(|(heading, _)| *heading)),
    )
    .named_by(3);
    for one in groups {
        let figure = |name: &&str| one.figure(name).map_or_else(String::new, output::time);
        let all = one.all();
        let valid = if one.failure.is_some() {
            "failed".to_owned()
        } else if one.valid == all {
            units::count(all as u64)
        } else {
            format!(
                "{} of {}",
                units::count(one.valid as u64),
                units::count(all as u64)
            )
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
                .chain(transfers.iter().map(|(_, cell)| {
                    let cell = one.transfer.as_ref().and_then(cell);
                    cell.unwrap_or_default()
                }))
                .collect::<Vec<_>>(),
        );
    }
    table
}
