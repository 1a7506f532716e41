//! Common parts of the commands that read experiments.

mod alternative;
pub(crate) mod analyze;
pub(crate) mod compare;
pub(crate) mod guidelines;
pub(crate) mod reproducibility;
pub(crate) mod samplesize;
pub(crate) mod verdict;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use alternative::Alternative;
use clap::{Args, ValueEnum};
use downbeat_clock_core::parse_share;
use downbeat_common::cli::{VerifyOptions, unreadable};
use downbeat_common::output::{percent, time};
use downbeat_common::page::svg::Picture;
use downbeat_common::page::{Page, PageOptions};
use downbeat_common::records::serialize_factors;
use downbeat_common::{Failure, Outputs, Table, TableColumns, Text, units};
use downbeat_files::FileError;
use downbeat_records::analysis::{
    Analysis, AnalysisSettings, Average, BusySign, GroupAnalysis, Outliers,
};
use downbeat_records::stats::Confidence;
use downbeat_records::{Experiment, RecordError, UNEQUAL, launch_files, read_experiment};
use downbeat_records::{Factors, GroupKey, Launch};
use serde::Serialize;

/// Options for the averages of launches.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct AnalysisOptions {
    /// Treatment of outliers: remove them by Tukey's filter, for each launch separately, or keep them
    #[arg(long, value_enum, default_value_t = OutliersOption::Tukey)]
    outliers: OutliersOption,
    /// Confidence level of intervals
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = confidence, allow_hyphen_values = true)]
    confidence: Confidence,
    #[command(flatten)]
    pub(crate) verify: VerifyOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OutliersOption {
    Tukey,
    Keep,
}

impl From<OutliersOption> for Outliers {
    fn from(option: OutliersOption) -> Self {
        match option {
            OutliersOption::Tukey => Self::Tukey,
            OutliersOption::Keep => Self::Keep,
        }
    }
}

/// Checks, before records are read, that a page can be written and replaces no file of an experiment.
fn protect_records(
    page: &PageOptions,
    folders: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), Failure> {
    if !page.is_wanted() {
        return Ok(());
    }
    page.add_to(&mut outputs_about(folders))
}

/// Returns the outputs of a command about experiments: none may replace a file in their folders but a page or a picture.
pub(crate) fn outputs_about(folders: impl IntoIterator<Item = impl AsRef<Path>>) -> Outputs {
    let files = folders.into_iter().flat_map(|folder| {
        let folder = folder.as_ref();
        let found = fs::read_dir(folder).into_iter().flatten();
        let found = found.filter_map(|entry| Some(entry.ok()?.path()));
        // A record can be named in place of its folder, and a plan can be missing.
        let found = found.chain([folder.to_owned()]);
        found
            .filter(|path| path.is_file())
            .chain([folder.join("plan.json")])
    });
    let is_page = |path: &PathBuf| {
        let end = path.extension().unwrap_or_default();
        end == "html" || end == "svg"
    };
    Outputs::new(files.filter(|path| !is_page(path)))
}

/// Definition of quartiles that all outputs name.
const QUARTILES: &str = "R type 7";

/// Returns the name of a value of an option.
fn option_name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn confidence(text: &str) -> Result<Confidence, String> {
    let share = parse_share(text).map_err(|why| why.to_string())?;
    Confidence::new(share).map_err(|why| why.to_string())
}

impl AnalysisOptions {
    pub(crate) fn settings(&self) -> AnalysisSettings {
        AnalysisSettings {
            outliers: self.outliers.into(),
            confidence: self.confidence,
            ..AnalysisSettings::default()
        }
    }

    fn method(&self) -> JsonMethod {
        JsonMethod {
            outliers: option_name(&self.outliers),
            quartiles: QUARTILES,
            confidence: self.confidence.share(),
        }
    }
}

/// Average of a launch.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AverageOption {
    /// Median of the observations
    Median,
    /// Mean of the observations
    Mean,
    /// Value that the processing of the launch reported, as other suites do
    Reported,
}

impl From<AverageOption> for Average {
    fn from(option: AverageOption) -> Self {
        match option {
            AverageOption::Median => Self::Median,
            AverageOption::Mean => Self::Mean,
            AverageOption::Reported => Self::Reported,
        }
    }
}

/// Launches that a command has read: a copy of one of them is no further evidence.
#[derive(Debug, Default)]
pub(crate) struct SeenLaunches(HashMap<[String; 2], PathBuf>);

impl SeenLaunches {
    /// Reads the launches of a folder; at least one.
    ///
    /// # Errors
    /// If they cannot be read, or one of them was read before.
    pub(crate) fn read(
        &mut self,
        folder: &Path,
        verify: VerifyOptions,
    ) -> Result<Experiment, Failure> {
        let found = read_experiment(folder, verify.checksums());
        let found = found.map_err(|why| Failure::Input(unreadable(why)))?;
        for (name, launch) in &found.launches {
            let Some(identity) = launch.identity() else {
                continue;
            };
            let path = folder.join(name);
            let [started, seed] = identity;
            if let Some(first) = self.0.insert(identity.map(str::to_owned), path.clone()) {
                return Err(Failure::Input(format!(
                    "{}: the same launch as {}: started {started}, seed {seed}",
                    path.display(),
                    first.display()
                )));
            }
        }
        Ok(found)
    }
}

/// Reads and analyses the launches of a folder.
fn analyse(
    folder: &Path,
    settings: &AnalysisSettings,
    verify: VerifyOptions,
    seen: &mut SeenLaunches,
) -> Result<Analysis, Failure> {
    analyse_launches(folder, &seen.read(folder, verify)?.launches, settings)
}

/// Analyses the launches of an experiment.
pub(crate) fn analyse_launches(
    folder: &Path,
    launches: &[(String, Launch)],
    settings: &AnalysisSettings,
) -> Result<Analysis, Failure> {
    let name = folder.display();
    let analysis = Analysis::new(launches, settings);
    let analysis = analysis.map_err(|why| Failure::Input(format!("{name}: {why}")))?;
    if analysis.groups.is_empty() {
        return Err(Failure::Input(format!("{name}: no group is complete")));
    }
    Ok(analysis)
}

/// Finds the experiments in folders: a folder without launches of its own is replaced by its subfolders with launches.
pub(crate) fn experiments_in(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for folder in folders {
        let inner = if is_without_launches(folder) {
            subfolders_with_launches(folder)?
        } else {
            Vec::new()
        };
        if inner.is_empty() {
            // If no subfolder has launches either, reading the folder will fail.
            found.push(folder.clone());
        }
        found.extend(inner);
    }
    Ok(found)
}

/// Returns the subfolders with launches, sorted by name; numbers in names by their values, as those of parameters: `size=8` is before
/// `size=16`.
fn subfolders_with_launches(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |why: std::io::Error| Failure::Input(format!("{}: {why}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && !is_without_launches(&path) {
            found.push(path);
        }
    }
    found.sort_by_cached_key(|path| name_key(&path.to_string_lossy()));
    Ok(found)
}

/// Splits a name where digits begin or end; with the values of numbers, unless they are too long.
fn name_key(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = Vec::new();
    let mut was_digit = None;
    for c in name.chars() {
        let is_digit = c.is_ascii_digit();
        match parts.last_mut() {
            Some((_, part)) if was_digit == Some(is_digit) => part.push(c),
            _ => parts.push((0, c.to_string())),
        }
        was_digit = Some(is_digit);
    }
    for (value, part) in &mut parts {
        *value = part.parse().unwrap_or(0);
    }
    parts
}

/// Returns true if this is a folder that contains no launch.
pub(crate) fn is_without_launches(folder: &Path) -> bool {
    matches!(launch_files(folder), Err(RecordError::File(FileError::Content { path, .. })) if path == folder)
}

/// Factors and launches of an experiment in JSON; always flattened.
#[derive(Debug, Serialize)]
struct JsonExperiment<'a> {
    folder: String,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    launches: &'a [String],
    /// Launches that are not complete.
    incomplete: &'a [String],
}

impl<'a> JsonExperiment<'a> {
    fn new(
        folder: &Path,
        Analysis {
            factors,
            launches,
            incomplete,
            ..
        }: &'a Analysis,
    ) -> Self {
        Self {
            folder: folder.display().to_string(),
            factors,
            launches,
            incomplete,
        }
    }
}

/// Method of an analysis, in JSON.
#[derive(Debug, Serialize)]
struct JsonMethod {
    outliers: String,
    quartiles: &'static str,
    confidence: f64,
}

/// Plural name of an average: `medians`.
pub(crate) const fn plural(average: Average) -> &'static str {
    match average {
        Average::Median => "medians",
        Average::Mean => "means",
        Average::Reported => "reported times",
    }
}

/// Creates a table in which a row begins with the key of its group.
fn table_of_groups<R>(
    rows: impl IntoIterator<Item = R>,
    key: fn(&R) -> &GroupKey,
) -> TableColumns<R> {
    Table::of(rows)
        .column("operation", |row| key(row).operation.clone())
        .column("bytes", |row| key(row).bytes.to_string())
        .column("ranks", |row| key(row).ranks.to_string())
}

/// Notes on launches that ran on different hosts or on unequal nodes.
pub(crate) fn places(analysis: &Analysis) -> impl Iterator<Item = String> {
    let Analysis { hosts, nodes, .. } = analysis;
    let hosts = (hosts.len() > 1).then(|| {
        format!(
            "launches ran on different hosts: {}",
            hosts.join(", others on ")
        )
    });
    let is_one_kind = nodes.len() < 2 && nodes.iter().all(|kind| !kind.starts_with(UNEQUAL));
    let nodes = (!is_one_kind)
        .then(|| format!("the nodes are not of one kind: {}", nodes.join(", others ")));
    hosts.into_iter().chain(nodes)
}

/// Names the launches that are not complete.
fn incomplete_launches(analysis: &Analysis) -> Option<String> {
    let names = analysis.incomplete.join(", ");
    (!names.is_empty()).then(|| format!("incomplete launches: {names}"))
}

/// Note on launches that were measured on a busy machine.
pub(crate) fn busy_launches(analysis: &Analysis) -> Option<String> {
    let sign = |sign: &BusySign| match *sign {
        BusySign::Stolen(share) => {
            format!("the host took {} of the processors' time", percent(share))
        }
        BusySign::Load(load) => format!("load of {load:.2} for each processor"),
        BusySign::Late(share) => format!("{} of the calls late", percent(share)),
        BusySign::RoundTrip { longest, shortest } => format!(
            "round trip of {} instead of {}",
            time(longest),
            time(shortest)
        ),
    };
    let found = analysis.busy_launches();
    let named = found.iter().map(|(conditions, signs)| {
        let signs = units::joined(signs.iter().map(sign), ", ");
        format!("{} ({signs})", conditions.launch)
    });
    let named = units::joined(named, "; ");
    (!named.is_empty()).then(|| format!("measured on a busy machine: {named}"))
}

/// Notes on groups of which the filter sets aside many observations: these may be no outliers.
pub(crate) fn many_outliers(analysis: &Analysis) -> impl Iterator<Item = String> {
    const MANY: f64 = 0.05;
    let is_many = |group: &&GroupAnalysis| group.outliers() as f64 > MANY * group.valid() as f64;
    analysis.groups.iter().filter(is_many).map(|group| {
        let above = group.outliers_above();
        let ends = match group.outliers() - above {
            0 => "all of them long".to_owned(),
            below if above == 0 => format!("all {below} of them short"),
            below => format!("{below} of them short and {above} long"),
        };
        let with = group.of_all().map_or_else(String::new, |[median, mean]| {
            format!(
                ": with them, the median is {} and the mean {}",
                time(median),
                time(mean)
            )
        });
        format!(
            "{}: {} of the observations are set aside as outliers, {ends}{with}",
            group.key,
            percent(group.outliers() as f64 / group.valid() as f64)
        )
    })
}

/// Title of a picture of an operation.
pub(crate) fn operation_title(operation: &str, ranks: u32) -> String {
    format!(
        "{operation}, {}",
        units::counted(ranks as usize, "rank", "ranks")
    )
}

/// Draws the groups of each operation and number of ranks in one picture, from its title; returns pictures with the names of their files.
fn pictures_of_operations<'a, G>(
    groups: &'a [G],
    key: fn(&G) -> &GroupKey,
    file: &'a str,
    draw: impl Fn(String, &[G]) -> Option<Picture> + 'a,
) -> impl Iterator<Item = (String, Option<Picture>)> + 'a {
    let of_one = move |one: &G, two: &G| {
        let (one, two) = (key(one), key(two));
        (&one.operation, one.ranks) == (&two.operation, two.ranks)
    };
    groups.chunk_by(of_one).map(move |groups| {
        let GroupKey {
            operation, ranks, ..
        } = key(&groups[0]);
        let picture = draw(operation_title(operation, *ranks), groups);
        (format!("{file}-{operation}-{ranks}"), picture)
    })
}

/// Table of results with the notes and the explanation below it, as text and on a page.
struct ResultTable {
    table: Table,
    notes: Vec<String>,
    explanation: String,
}

impl ResultTable {
    fn text(self, headline: String) -> Text {
        let mut text = Text::from(headline);
        if !self.table.is_empty() {
            text += self.table;
            text += "\n";
        }
        for note in self.notes {
            text += format!("Note: {note}\n");
        }
        text += self.explanation;
        text
    }

    fn add_to(&self, page: &mut Page, heading: &str, caption: &str) {
        for note in &self.notes {
            page.note(&format!("Note: {note}."));
        }
        page.section("table", heading);
        page.table(caption, &self.table);
        page.notes(self.explanation.lines());
    }
}

/// Returns the line below a table that names the treatment of outliers.
fn outliers_line(settings: &AnalysisSettings) -> String {
    format!("Outliers: {}.\n", settings.outliers.name())
}

/// Formats a number of launches.
pub(crate) fn launches(number: usize) -> String {
    units::counted(number, "launch", "launches")
}

/// Returns a dash if there is no value.
fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

/// Formats a share with up to two decimals: `95 %`, `97.85 %`.
pub(crate) fn percentage(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_their_numbers() {
        let mut names = [
            "a,n=16",
            "a,n=8",
            "b,n=1",
            "a,n=8,m=2",
            "a",
            "99999999999999999999",
        ];
        names.sort_by_cached_key(|name| name_key(name));
        assert_eq!(
            names,
            [
                "99999999999999999999",
                "a",
                "a,n=8",
                "a,n=8,m=2",
                "a,n=16",
                "b,n=1"
            ]
        );
    }
}
