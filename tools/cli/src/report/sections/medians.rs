//! Averages over message sizes: one plot for each operation and number of ranks, and a table.

use downbeat_records::analysis::{Average, GroupAnalysis};

use crate::experiments::{many_outliers, percentage};
use crate::report::measured::{Experiments, MeasuredExperiment, MeasuredOperation};
use downbeat_common::page::Page;
use downbeat_common::page::sizes::{self, SizeLine};
use downbeat_common::{Table, units};

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    page.section("medians", "Run-times over sizes");
    let quantity = format!("{} run-time", experiments.average.name());
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
        let lines = experiments.all.iter();
        let lines: Vec<SizeLine> = lines
            .map(|measured| line(experiments, measured, operation))
            .collect();
        let title = format!("{}: {quantity}", operation.title());
        (
            format!("run-time-{}-{}", operation.operation, operation.ranks),
            sizes::picture(title, &quantity, &lines),
        )
    }));
    for measured in &experiments.all {
        let suffix = experiments.suffix(&measured.name);
        page.folded(&format!("As a table{suffix}"), |page| {
            page.table(&measured.name, &table(experiments, measured));
            page.note(&format!(
                "Apart: relative difference between the slowest and the fastest launch. Wanted: upper limit of the number of \
                 launches for an interval of ±{} of the average at that confidence; from 6 launches on.",
                percentage(experiments.settings.interval)
            ));
            page.notes(many_outliers(&measured.analysis).map(|note| format!("{note}.")));
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
) -> SizeLine {
    let point = |bytes: &u64| {
        let group = measured.group(&operation.key(*bytes))?;
        Some((*bytes, experiments.median(group)?))
    };
    SizeLine {
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

fn table(experiments: &Experiments, measured: &MeasuredExperiment) -> Table {
    let average = experiments.average;
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "–".to_owned());
    let median = |group: &GroupAnalysis| experiments.median(group).map(|median| median.nanos);
    let interval = |group: &GroupAnalysis| experiments.median(group)?.interval;
    Table::of(&measured.analysis.groups)
        .column("operation", |group| group.key.operation.clone())
        .column("size", |group| units::bytes(group.key.bytes))
        .column("ranks", |group| group.key.ranks.to_string())
        .column("launches", |group| {
            let averages = group.averages(average);
            averages.map_or(0, |averages| averages.len()).to_string()
        })
        .column("median", |group| or_dash(median(group).map(units::time)))
        .column("from", |group| {
            or_dash(interval(group).map(|found| units::time(found.low)))
        })
        .column("to", |group| {
            or_dash(interval(group).map(|found| units::time(found.high)))
        })
        .column("apart", |group| {
            or_dash(group.spread(average).map(units::percent))
        })
        .column("observations", |group| units::count(group.valid() as u64))
        .column("outliers", |group| units::count(group.outliers() as u64))
        .column("wanted", |group| {
            let wanted = group.launches_needed(average, &experiments.settings);
            or_dash(wanted.map(units::count))
        })
        .table()
}
