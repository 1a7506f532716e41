//! Averages over message sizes: one plot for each operation and number of ranks, and a table.

use downbeat_records::analysis::{Average, GroupAnalysis};

use crate::experiments::{many_outliers, percentage};
use crate::report::lines::{self, AverageLine, AveragePoint};
use crate::report::measured::{Experiments, MeasuredExperiment, MeasuredOperation};
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    page.section("medians", "Run-times over sizes");
    let average = experiments.average.name();
    page.note(&format!(
        "Each launch has one average: {}. A point is the median of the launches; the bar is its interval with {} \
         confidence by the sign test. Outliers: {}.",
        averaged(experiments.average),
        percentage(experiments.settings.confidence.share()),
        experiments.settings.outliers.name()
    ));
    if let Some(doubt) = few_launches(experiments) {
        page.note(&doubt);
    }
    page.pictures(operations.iter().map(|operation| {
        let lines: Vec<AverageLine> = experiments
            .all
            .iter()
            .map(|measured| line(experiments, measured, operation))
            .collect();
        let title = format!("{}: {average} run-time", operation.title());
        (
            format!("run-time-{}-{}", operation.operation, operation.ranks),
            lines::picture(title, average, &lines),
        )
    }));
    for measured in &experiments.all {
        let suffix = experiments.suffix(&measured.name);
        page.folded(&format!("As a table{suffix}"), |page| {
            page.table(&table(experiments, measured));
            page.note(&format!(
                "Apart: relative difference between the slowest and the fastest launch. Wanted: upper limit of the number of \
                 launches for an interval of ±{} of the average at that confidence; from 6 launches on.",
                percentage(experiments.settings.interval)
            ));
            many_outliers(&measured.analysis).for_each(|note| page.note(&format!("{note}.")));
        });
    }
}

/// Describes the average of a launch.
const fn averaged(average: Average) -> &'static str {
    match average {
        Average::Median => "the median of its observations",
        Average::Mean => "the mean of its observations",
        Average::Reported => "the value that its processing reported",
    }
}

fn line(
    experiments: &Experiments,
    measured: &MeasuredExperiment,
    operation: &MeasuredOperation,
) -> AverageLine {
    let point = |bytes: &u64| {
        let averages = measured
            .group(&operation.key(*bytes))?
            .averages(experiments.average)?;
        Some(AveragePoint {
            bytes: *bytes,
            average: experiments.median(&averages),
        })
    };
    AverageLine {
        name: measured.name.clone(),
        points: operation.sizes.iter().filter_map(point).collect(),
    }
}

/// Note on experiments with too few launches for the requested confidence.
fn few_launches(experiments: &Experiments) -> Option<String> {
    let wanted = experiments.settings.confidence.share();
    let too_low = |measured: &MeasuredExperiment| {
        let averages = measured
            .analysis
            .groups
            .iter()
            .filter_map(|group| group.averages(experiments.average));
        let reached = |averages| {
            experiments
                .interval(&averages)
                .map_or(0.0, |found| found.confidence)
        };
        let least = averages.map(reached).reduce(f64::min)?;
        (least < wanted - 1e-9).then(|| format!("{} ({})", measured.name, percentage(least)))
    };
    let doubtful: Vec<String> = experiments.all.iter().filter_map(too_low).collect();
    (!doubtful.is_empty()).then(|| {
        let names = doubtful.join(", ");
        format!(
            "Too few launches for that confidence, even if the bar is their whole range: {names}."
        )
    })
}

fn table(experiments: &Experiments, measured: &MeasuredExperiment) -> HtmlTable {
    let headings = [
        "operation",
        "size",
        "ranks",
        "launches",
        "median",
        "from",
        "to",
        "apart",
        "observations",
        "outliers",
        "wanted",
    ];
    let mut table = HtmlTable::of_numbers(&measured.name, headings);
    for group in &measured.analysis.groups {
        table.row(row(experiments, group));
    }
    table
}

fn row(experiments: &Experiments, group: &GroupAnalysis) -> [String; 11] {
    let averages = group.averages(experiments.average);
    let interval = averages
        .and_then(|averages| experiments.interval(&averages))
        .map(|found| found.interval);
    let time = |nanos: Option<f64>| nanos.map_or("–".to_owned(), units::time);
    [
        group.key.operation.clone(),
        units::bytes(group.key.bytes),
        group.key.ranks.to_string(),
        averages.map_or(0, |averages| averages.len()).to_string(),
        time(averages.map(|averages| averages.median())),
        time(interval.map(|interval| interval.low)),
        time(interval.map(|interval| interval.high)),
        group
            .spread(experiments.average)
            .map_or("–".to_owned(), units::percent),
        units::count(group.valid() as u64),
        units::count(group.outliers() as u64),
        group
            .launches_needed(experiments.average, &experiments.settings)
            .map_or("–".to_owned(), units::count),
    ]
}
