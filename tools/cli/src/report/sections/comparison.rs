//! Comparison of the other experiments with the first: plots of shifts, and test results.

use downbeat_common::output::probability;
use downbeat_records::analysis::{ComparedGroup, ExperimentComparison};
use downbeat_records::stats::{Interval, PValues, stars};

use crate::experiments::{Alternative, plural};
use crate::report::measured::{Experiments, MeasuredOperation};
use crate::report::shifts::{self, RelativeShift};
use downbeat_common::page::Page;
use downbeat_common::page::svg::fitting;
use downbeat_common::units::{self, joined};
use downbeat_common::{RowMark, Table};

/// Compares each experiment with the first.
pub(super) fn compare(experiments: &Experiments) -> Vec<ExperimentComparison> {
    let Some((first, others)) = experiments.all.split_first() else {
        return Vec::new();
    };
    let confidence = experiments.settings.confidence;
    let against =
        |other| ExperimentComparison::new(other, &first.analysis, experiments.average, confidence);
    others
        .iter()
        .map(|other| against(&other.analysis))
        .collect()
}

/// Returns the shift and its interval, divided by the first experiment's median.
fn shift(group: &ComparedGroup) -> Option<(f64, Interval)> {
    let found = &group.comparison;
    found.relative_shift().zip(found.relative_interval())
}

pub(super) fn write(
    page: &mut Page,
    experiments: &Experiments,
    operations: &[MeasuredOperation],
    compared: &[ExperimentComparison],
) {
    if compared.is_empty() {
        return;
    }
    let (names, average) = (experiments.names(), experiments.average.name());
    page.section("comparison", "Comparison");
    page.note(&format!(
        "Hodges-Lehmann shifts of the launches' {} relative to {}, with their intervals. Asterisks: p of the \
         Wilcoxon-Mann-Whitney test with the alternative “{}”, adjusted by Holm over all sizes and operations: * up to \
         0.05, ** up to 0.01, *** up to 0.001.",
        plural(experiments.average),
        names[0],
        experiments.alternative.statement(&names[0], "the other one")
    ));
    page.pictures(operations.iter().map(|operation| {
        let title = format!("{}: shift of the {average}", operation.title());
        let shifts = operation_shifts(experiments.alternative, operation, compared);
        (
            format!("shift-{}-{}", operation.operation, operation.ranks),
            shifts::picture(title, &names, &shifts),
        )
    }));
    for (comparison, name) in compared.iter().zip(&names[1..]) {
        let both = [&*names[0], name];
        let caption = format!("{name} against {}", names[0]);
        page.table(&caption, &table(experiments.alternative, comparison, both));
        for (missing, experiment) in comparison.missing.iter().zip([name, &names[0]]) {
            if !missing.is_empty() {
                let keys = joined(missing.iter().map(units::group), "; ");
                page.note(&format!(
                    "Not compared, since {experiment} has no averages: {keys}."
                ));
            }
        }
    }
}

fn operation_shifts(
    alternative: Alternative,
    operation: &MeasuredOperation,
    compared: &[ExperimentComparison],
) -> Vec<RelativeShift> {
    let shift_of_size = |bytes: u64, series: usize| {
        let key = operation.key(bytes);
        let group = compared[series]
            .groups
            .iter()
            .find(|group| group.key == key)?;
        let (share, interval) = shift(group)?;
        Some(RelativeShift {
            bytes,
            series: series + 1,
            share,
            interval,
            stars: stars(alternative.p_value(&group.adjusted)),
        })
    };
    operation
        .sizes
        .iter()
        .flat_map(|bytes| (0..compared.len()).filter_map(|series| shift_of_size(*bytes, series)))
        .collect()
}

fn table(alternative: Alternative, comparison: &ExperimentComparison, names: [&str; 2]) -> Table {
    // Full names would make the table too wide; they are in its caption.
    let [of_first, of_name] = names.map(|name| fitting(name, 120.0));
    let p = |p: &PValues| alternative.p_value(p);
    let share = |group: &ComparedGroup, pick: fn((f64, Interval)) -> f64| {
        let found = shift(group).map(pick);
        found.map_or_else(|| "–".to_owned(), units::percent)
    };
    let stars = |group: &ComparedGroup| stars(p(&group.adjusted));
    Table::of(&comparison.groups)
        .column("operation", |group| group.key.operation.clone())
        .column("size", |group| units::bytes(group.key.bytes))
        .column("ranks", |group| group.key.ranks.to_string())
        .column(&of_first, |group| units::time(group.comparison.medians[1]))
        .column(&of_name, |group| units::time(group.comparison.medians[0]))
        .column("shift", |group| share(group, |(share, _)| share))
        .column("from", |group| share(group, |(_, interval)| interval.low))
        .column("to", |group| share(group, |(_, interval)| interval.high))
        .column("p", |group| {
            probability(p(&group.comparison.mann_whitney.p))
        })
        .column("p adjusted", |group| probability(p(&group.adjusted)))
        .column("", |group| stars(group).to_owned())
        .mark(|group| (!stars(group).is_empty()).then_some(RowMark::Highlight))
        .table()
}
