//! `downbeat reproducibility`: spread between repetitions of an experiment, as in figure 12 of Hunold 2016.

mod group;
mod page;

use std::path::PathBuf;

use clap::Args;
use downbeat_common::page::PageOptions;
use downbeat_common::records::{Factors, serialize_factors};
use downbeat_common::{Failure, PrintOptions};
use downbeat_records::analysis::{Analysis, AnalysisSettings, Average, Reproducibility};
use serde::Serialize;

use super::{AnalysisOptions, AverageOption, JsonMethod, SeenLaunches, analyse, experiments_in};
use super::{
    ResultTable, incomplete_launches, many_outliers, outliers_line, percentage, places, plural,
    protect_records,
};
use group::ReproducibilityGroupReport;

#[derive(Args, Debug)]
#[command(
    after_help = "Each folder is one trial: an experiment of several launches. A folder without launches of its own stands \
                  for the folders in it. The value of a trial is the mean of its launches' medians; the ratios of these \
                  values to the smallest are the figure of merit of a measurement method.\n\n\
                  Example:\n  \
                  for i in 1 2 3; do\n    \
                  downbeat run -n 5 --out trials/$i -- mpirun -np 2 downbeat-mpi bench\n  \
                  done\n  \
                  downbeat reproducibility trials -o trials.html"
)]
pub(crate) struct ReproducibilityOptions {
    /// Folders of trials, or folders that contain such folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Average of each launch that the value of a trial is the mean of
    #[arg(long, value_enum, default_value_t = AverageOption::Median, value_name = "AVERAGE")]
    of: AverageOption,
    #[command(flatten)]
    analysis: AnalysisOptions,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &ReproducibilityOptions) -> Result<(), Failure> {
    let settings = options.analysis.settings();
    let folders = experiments_in(&options.folders)?;
    if let [only] = &folders[..] {
        let only = only.display();
        return Err(Failure::Input(format!(
            "{only}: only one trial; at least two are needed"
        )));
    }
    protect_records(&options.page, &folders)?;
    let (mut trials, mut seen) = (Vec::new(), SeenLaunches::default());
    for folder in folders {
        let analysis = analyse(&folder, &settings, options.analysis.verify, &mut seen)?;
        trials.push((folder.display().to_string(), analysis));
    }
    let average = Average::from(options.of);
    let found = Reproducibility::for_trials(&trials, average);
    if found.iter().all(|group| group.trials.is_empty()) {
        return Err(Failure::option(
            "--of",
            format!("no launch has {}", plural(average)),
        ));
    }
    let results = || ResultTable {
        table: group::table(&found, settings.confidence),
        notes: remarks(&trials, &found),
        explanation: explanation(average, &settings),
    };
    options.page.write_or(
        &format!("Reproducibility of {} trials", trials.len()),
        || page::page(&found, &results()),
        || {
            let headline = format!("{} trials: {}\n\n", trials.len(), names(&trials));
            options.print.print(
                || report(options, &trials, &found),
                || results().text(headline),
            )
        },
    )
}

/// Explains the columns of the table.
fn explanation(average: Average, settings: &AnalysisSettings) -> String {
    let outliers = outliers_line(settings);
    format!(
        "{outliers}Smallest, largest: means of the launches' {} of a trial. Spread: largest / smallest - 1, which grows with the number \
         of trials.\n\
         Deviation: standard deviation of the trials relative to their mean, with its {} interval if they are normal.\n",
        plural(average),
        percentage(settings.confidence.share())
    )
}

fn names(trials: &[(String, Analysis)]) -> String {
    /// Maximum number of trials listed by name.
    const SHOWN: usize = 4;
    let names: Vec<&str> = trials.iter().map(|(name, _)| name.as_str()).collect();
    match &names[..] {
        [first, .., last] if names.len() > SHOWN => format!("{first} ... {last}"),
        all => all.join(", "),
    }
}

/// Notes below the table.
fn remarks(trials: &[(String, Analysis)], found: &[Reproducibility]) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some((name, factor)) = differing(trials) {
        remarks.push(format!(
            "these are not repetitions: the factor \"{factor}\" of {name} differs from that of the first trial"
        ));
    }
    for (name, trial) in trials {
        remarks.extend(incomplete_launches(trial).map(|note| format!("{name}: {note}")));
    }
    for (name, trial) in trials {
        let notes = places(trial).chain(many_outliers(trial));
        remarks.extend(notes.map(|note| format!("{name}: {note}")));
    }
    for group in found.iter().filter(|group| !group.missing.is_empty()) {
        remarks.push(format!(
            "{}: not measured in {}",
            group.key,
            group.missing.join(", ")
        ));
    }
    remarks
}

/// Name of the first trial that differs from the first one in a factor, with the factor.
fn differing(trials: &[(String, Analysis)]) -> Option<(&str, &str)> {
    let (_, first) = trials.first()?;
    trials
        .iter()
        .find_map(|(name, trial)| Some((name.as_str(), first.factors.differing(&trial.factors)?)))
}

/// Report of `downbeat reproducibility` in JSON.
#[derive(Debug, Serialize)]
struct ReproducibilityReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    method: JsonMethod,
    /// Average of each launch that a trial is the mean of.
    of: &'static str,
    trials: Vec<ReproducibilityTrialReport<'a>>,
    /// First factor that differs between trials.
    differing_factor: Option<&'a str>,
    groups: Vec<ReproducibilityGroupReport<'a>>,
}

#[derive(Debug, Serialize)]
struct ReproducibilityTrialReport<'a> {
    trial: &'a str,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    launches: &'a [String],
    incomplete: &'a [String],
}

fn report<'a>(
    options: &ReproducibilityOptions,
    trials: &'a [(String, Analysis)],
    found: &'a [Reproducibility],
) -> ReproducibilityReport<'a> {
    let trial = |(name, analysis): &'a (String, Analysis)| ReproducibilityTrialReport {
        trial: name,
        factors: &analysis.factors,
        launches: &analysis.launches,
        incomplete: &analysis.incomplete,
    };
    let confidence = options.analysis.settings().confidence;
    let groups = found
        .iter()
        .map(|group| ReproducibilityGroupReport::new(group, confidence));
    ReproducibilityReport {
        schema: "downbeat.reproducibility",
        version: 1,
        method: options.analysis.method(),
        of: Average::from(options.of).name(),
        trials: trials.iter().map(trial).collect(),
        differing_factor: differing(trials).map(|(_, factor)| factor),
        groups: groups.collect(),
    }
}
