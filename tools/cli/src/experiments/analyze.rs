//! `downbeat analyze`: averages over the launches of an experiment, by algorithm 3 of Hunold 2016.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_clock_core::parse_share;
use downbeat_common::output::{percent, time, time_within};
use downbeat_common::units;
use downbeat_common::{Failure, PrintOptions, Table, Text};
use downbeat_records::analysis::{
    Analysis, AnalysisSettings, Average, GroupAnalysis, LaunchAverages,
};
use downbeat_records::stats::{Interval, Sample, StatsError, VarianceParts};
use downbeat_records::{GroupKey, ObservationState};
use serde::Serialize;

use super::{
    AnalysisOptions, JsonExperiment, JsonMethod, SeenLaunches, analyse, experiments_in, percentage,
};
use super::{busy_launches, many_outliers, or_dash, outliers_line, places, table_of_groups};

#[derive(Args, Debug)]
#[command(
    after_help = "A folder holds one experiment, with a record for each launch, as `downbeat run` writes them; a folder without \
                  launches stands for all experiments in it. Each launch contributes one median and one mean; the table \
                  shows statistics of these.\n\n\
                  Example:\n  downbeat run -n 10 --out results -- mpirun -np 2 downbeat-mpi bench\n  \
                  downbeat analyze results --interval 2%"
)]
pub(crate) struct AnalyzeOptions {
    /// Folders of experiments
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Half width of the confidence interval of the mean of the launches' medians,
    /// relative to it, for which to estimate the launches needed
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share, allow_hyphen_values = true)]
    interval: f64,
    #[command(flatten)]
    analysis: AnalysisOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &AnalyzeOptions) -> Result<(), Failure> {
    let settings = AnalysisSettings {
        interval: options.interval,
        ..options.analysis.settings()
    };
    let mut found = Vec::new();
    for folder in experiments_in(&options.folders)? {
        let mut seen = SeenLaunches::default();
        let analysis = analyse(&folder, &settings, options.analysis.verify, &mut seen)?;
        found.push((folder, analysis));
    }
    options.print.print(
        || report(options, &settings, &found),
        || render(&settings, &found),
    )
}

fn render(settings: &AnalysisSettings, found: &[(PathBuf, Analysis)]) -> Text {
    let mut text = Text::default();
    for (folder, analysis) in found {
        text += experiment(folder, analysis);
        text += "\n";
    }
    let confidence = percentage(settings.confidence.share());
    text += outliers_line(settings);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "Median: median of the launches' medians, with its {confidence} interval by the sign test. Mean: mean of their means.\n\
         Spread: relative difference between the largest and the smallest of these medians.\n\
         Between: share of the observations' variance between launches; the rest is within launches.\n\
         Needed: upper limit of the number of launches for an interval of +-{} of the mean of the medians; from 6 launches on.\n",
        percentage(settings.interval)
    );
    text
}

fn experiment(folder: &Path, analysis: &Analysis) -> Text {
    let mut text = Text::from(format!(
        "{}: {}\n\n",
        folder.display(),
        super::launches(analysis.launches.len())
    ));
    text += table(analysis);
    for remark in remarks(analysis) {
        let _ = writeln!(text, "Note: {remark}");
    }
    text
}

fn table(analysis: &Analysis) -> Table {
    let settings = &analysis.settings;
    let median = |group: &GroupAnalysis, average| {
        let averages = group.averages(average)?;
        let median = averages.median();
        Some(match averages.median_interval(settings.confidence) {
            Some(found) => time_within(median, [found.interval.low, found.interval.high]),
            None => time(median),
        })
    };
    let spread = |group: &GroupAnalysis| {
        group
            .averages(Average::Median)
            .filter(|medians| medians.len() > 1)?;
        group.spread(Average::Median).map(percent)
    };
    let between = |group: &GroupAnalysis| {
        let share = group.variance.as_ref().ok()?.between_share();
        share.map(percent)
    };
    let needed = |group: &GroupAnalysis| {
        let needed = group.launches_needed(Average::Median, settings);
        needed.map(|needed| format!("<= {}", units::count(needed)))
    };
    let reported = |group: &GroupAnalysis| median(group, Average::Reported);
    let has_reported = analysis
        .groups
        .iter()
        .any(|group| reported(group).is_some());
    table_of_groups(&analysis.groups, |group| &group.key)
        .column("launches", |group| launches(group))
        .column("valid", |group| units::count(group.valid() as u64))
        .column("invalid", |group| invalid(group))
        .column("outliers", |group| units::count(group.outliers() as u64))
        .column("median", |group| or_dash(median(group, Average::Median)))
        .column("mean", |group| {
            let means = group.averages(Average::Mean);
            or_dash(means.map(|means| time(means.mean())))
        })
        .column("spread", |group| or_dash(spread(group)))
        .column("between", |group| or_dash(between(group)))
        .column("needed", |group| or_dash(needed(group)))
        .column(if has_reported { "reported" } else { "" }, |group| {
            reported(group).unwrap_or_default()
        })
        .named_by(3)
}

/// Number of launches that measured the group.
fn launches(group: &GroupAnalysis) -> String {
    let (measured, missing) = (group.launches.len(), group.missing.len());
    if missing == 0 {
        measured.to_string()
    } else {
        format!("{measured} of {}", measured + missing)
    }
}

/// Number of invalid observations, for each reason.
fn invalid(group: &GroupAnalysis) -> String {
    let causes = ObservationState::INVALID.map(|state| (group.count(state), state.name()));
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes = causes.map(|(count, name)| format!("{count} {name}"));
    match units::joined(causes, ", ") {
        none if none.is_empty() => "0".to_owned(),
        causes => causes,
    }
}

/// Notes below the table.
fn remarks(analysis: &Analysis) -> Vec<String> {
    let mut remarks = Vec::new();
    if !analysis.incomplete.is_empty() {
        let names = analysis.incomplete.join(", ");
        remarks.push(format!(
            "incomplete launches, of which only complete groups are used: {names}"
        ));
    }
    if analysis.launches.len() == 1 {
        remarks.push(
            "one launch does not show the variation between launches: there are no intervals"
                .to_owned(),
        );
    }
    for group in &analysis.groups {
        let key = &group.key;
        if !group.missing.is_empty() {
            remarks.push(format!(
                "{key}: not measured in {}",
                group.missing.join(", ")
            ));
        }
        let without = group
            .launches
            .iter()
            .filter(|launch| launch.median.is_none());
        let without = units::joined(without.map(|launch| &launch.launch), ", ");
        if !without.is_empty() {
            remarks.push(format!("{key}: no valid observation in {without}"));
        }
    }
    remarks.extend(unrepeated(analysis));
    remarks.extend(places(analysis));
    remarks.extend(busy_launches(analysis));
    remarks.extend(many_outliers(analysis));
    remarks.extend(uncertain(analysis));
    remarks
}

/// Notes on groups without two observations in any launch, or one note if that are all.
fn unrepeated(analysis: &Analysis) -> Vec<String> {
    const WHY: &str = "no launch has two observations, so the variance cannot be split";
    let is_unrepeated = |group: &&GroupAnalysis| group.variance == Err(StatsError::NoRepetition);
    let groups: Vec<&GroupAnalysis> = analysis.groups.iter().filter(is_unrepeated).collect();
    if groups.len() > 1 && groups.len() == analysis.groups.len() {
        return vec![WHY.to_owned()];
    }
    let note = |group: &GroupAnalysis| format!("{}: {WHY}", group.key);
    groups.into_iter().map(note).collect()
}

/// Note on too few launches for the requested confidence.
pub(crate) fn uncertain(analysis: &Analysis) -> Option<String> {
    let wanted = analysis.settings.confidence;
    let medians = analysis
        .groups
        .iter()
        .filter_map(|group| group.averages(Average::Median));
    let fewest = medians
        .filter(|medians| medians.len() > 1)
        .min_by_key(Sample::len)?;
    let reached = fewest.median_interval(wanted)?.confidence;
    (reached < wanted.share()).then(|| {
        format!(
            "{} launches are too few for an interval of {}: their whole range has {}",
            fewest.len(),
            percentage(wanted.share()),
            percentage(reached)
        )
    })
}

/// Report of `downbeat analyze` in JSON.
#[derive(Debug, Serialize)]
struct AnalyzeReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    method: JsonMethod,
    /// Half width of the interval of the mean of the medians for which launches are
    /// needed, relative to it.
    interval: f64,
    experiments: Vec<AnalyzeExperimentReport<'a>>,
}

#[derive(Debug, Serialize)]
struct AnalyzeExperimentReport<'a> {
    #[serde(flatten)]
    experiment: JsonExperiment<'a>,
    groups: Vec<AnalyzeGroupReport<'a>>,
    conditions: Vec<AnalyzeConditions<'a>>,
}

/// Conditions of the machine during a launch.
#[derive(Debug, Serialize)]
struct AnalyzeConditions<'a> {
    launch: &'a str,
    stolen_share: Option<f64>,
    load_per_core: Option<f64>,
    late_share: Option<f64>,
    round_trip_at_start_ns: Option<f64>,
    round_trip_at_end_ns: Option<f64>,
    /// True if the launch is named as one on a busy machine.
    busy: bool,
}

/// Numbers of observations, by their states.
#[derive(Debug, Serialize)]
struct ObservationCounts {
    valid: usize,
    late: u64,
    long: u64,
    drifted: u64,
    outliers: usize,
}

impl ObservationCounts {
    fn new(valid: usize, outliers: usize, count: impl Fn(ObservationState) -> u64) -> Self {
        Self {
            valid,
            late: count(ObservationState::Late),
            long: count(ObservationState::Long),
            drifted: count(ObservationState::Drifted),
            outliers,
        }
    }
}

#[derive(Debug, Serialize)]
struct AnalyzeGroupReport<'a> {
    #[serde(flatten)]
    key: &'a GroupKey,
    #[serde(flatten)]
    counts: ObservationCounts,
    medians: Option<AnalyzeAverages>,
    means: Option<AnalyzeAverages>,
    reported: Option<AnalyzeAverages>,
    variance_between_ns2: Option<f64>,
    variance_within_ns2: Option<f64>,
    /// Share of the variance that is between launches.
    between_share: Option<f64>,
    launches_needed_at_most: Option<u64>,
    launches: Vec<AnalyzeLaunchReport<'a>>,
    /// Launches that did not measure the group.
    missing: &'a [String],
}

/// Statistics of the launches' averages.
#[derive(Debug, Serialize)]
struct AnalyzeAverages {
    launches: usize,
    median_ns: f64,
    median_interval: Option<AnalyzeInterval>,
    mean_ns: f64,
    mean_interval: Option<AnalyzeInterval>,
    /// Relative difference between the largest and the smallest.
    spread: Option<f64>,
}

#[derive(Debug, Serialize)]
struct AnalyzeInterval {
    low_ns: f64,
    high_ns: f64,
    confidence: f64,
}

#[derive(Debug, Serialize)]
struct AnalyzeLaunchReport<'a> {
    launch: &'a str,
    #[serde(flatten)]
    counts: ObservationCounts,
    outliers_above: usize,
    median_ns: Option<f64>,
    mean_ns: Option<f64>,
    median_with_outliers_ns: Option<f64>,
    mean_with_outliers_ns: Option<f64>,
    reported_ns: Option<f64>,
}

fn report<'a>(
    options: &AnalyzeOptions,
    settings: &AnalysisSettings,
    found: &'a [(PathBuf, Analysis)],
) -> AnalyzeReport<'a> {
    let experiment = |(folder, analysis): &'a (PathBuf, Analysis)| AnalyzeExperimentReport {
        experiment: JsonExperiment::new(folder, analysis),
        groups: analysis
            .groups
            .iter()
            .map(|group| group_report(group, settings))
            .collect(),
        conditions: conditions_report(analysis),
    };
    AnalyzeReport {
        schema: "downbeat.analysis",
        version: 1,
        method: options.analysis.method(),
        interval: settings.interval,
        experiments: found.iter().map(experiment).collect(),
    }
}

fn conditions_report(analysis: &Analysis) -> Vec<AnalyzeConditions<'_>> {
    let busy = analysis.busy_launches();
    let is_busy = |name: &str| busy.iter().any(|(busy, _)| busy.launch == name);
    let conditions = analysis.conditions.iter();
    conditions
        .map(|one| AnalyzeConditions {
            launch: &one.launch,
            stolen_share: one.stolen,
            load_per_core: one.load,
            late_share: one.late,
            round_trip_at_start_ns: one.round_trips[0],
            round_trip_at_end_ns: one.round_trips[1],
            busy: is_busy(&one.launch),
        })
        .collect()
}

fn group_report<'a>(
    group: &'a GroupAnalysis,
    settings: &AnalysisSettings,
) -> AnalyzeGroupReport<'a> {
    let parts = group.variance.as_ref().ok();
    AnalyzeGroupReport {
        key: &group.key,
        counts: ObservationCounts::new(group.valid(), group.outliers(), |state| group.count(state)),
        medians: averages(group, Average::Median, settings),
        means: averages(group, Average::Mean, settings),
        reported: averages(group, Average::Reported, settings),
        variance_between_ns2: parts.map(VarianceParts::between),
        variance_within_ns2: parts.map(VarianceParts::within),
        between_share: parts.and_then(VarianceParts::between_share),
        launches_needed_at_most: group.launches_needed(Average::Median, settings),
        launches: group.launches.iter().map(launch_report).collect(),
        missing: &group.missing,
    }
}

fn averages(
    group: &GroupAnalysis,
    average: Average,
    settings: &AnalysisSettings,
) -> Option<AnalyzeAverages> {
    let averages = group.averages(average)?;
    let interval = |Interval { low, high }, confidence| AnalyzeInterval {
        low_ns: low,
        high_ns: high,
        confidence,
    };
    let median = averages.median_interval(settings.confidence);
    let mean = averages.mean_interval(settings.confidence);
    Some(AnalyzeAverages {
        launches: averages.len(),
        median_ns: averages.median(),
        median_interval: median.map(|median| interval(median.interval, median.confidence)),
        mean_ns: averages.mean(),
        mean_interval: mean.map(|mean| interval(mean, settings.confidence.share())),
        spread: group.spread(average),
    })
}

fn launch_report(launch: &LaunchAverages) -> AnalyzeLaunchReport<'_> {
    AnalyzeLaunchReport {
        launch: &launch.launch,
        counts: ObservationCounts::new(launch.valid, launch.outliers, |state| launch.count(state)),
        outliers_above: launch.outliers_above,
        median_ns: launch.median,
        mean_ns: launch.mean,
        median_with_outliers_ns: launch.of_all.map(|[median, _]| median),
        mean_with_outliers_ns: launch.of_all.map(|[_, mean]| mean),
        reported_ns: launch.reported,
    }
}
