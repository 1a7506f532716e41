//! Comparison of the other experiments with the first: plots of shifts, and test results.

use downbeat_common::output::probability;
use downbeat_records::analysis::{ComparedGroup, ExperimentComparison};
use downbeat_records::stats::{Interval, stars};

use crate::experiments::{Alternative, plural};
use crate::report::measured::{Experiments, MeasuredOperation};
use crate::report::shifts::{self, RelativeShift};
use downbeat_common::page::svg::fitting;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;

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
        (
            format!("shift-{}-{}", operation.operation, operation.ranks),
            shifts::picture(
                title,
                &names,
                &operation_shifts(experiments.alternative, operation, compared),
            ),
        )
    }));
    for (comparison, name) in compared.iter().zip(&names[1..]) {
        page.table(&table(experiments.alternative, comparison, name, &names[0]));
        for (missing, experiment) in comparison.missing.iter().zip([name, &names[0]]) {
            if !missing.is_empty() {
                let keys: Vec<String> = missing.iter().map(units::group).collect();
                page.note(&format!(
                    "Not compared, since {experiment} has no averages: {}.",
                    keys.join("; ")
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

fn table(
    alternative: Alternative,
    comparison: &ExperimentComparison,
    name: &str,
    first: &str,
) -> HtmlTable {
    // Full names would make the table too wide; they are in its caption.
    let [of_first, of_name] = [first, name].map(|name| fitting(name, 120.0));
    let headings = [
        "operation",
        "size",
        "ranks",
        &of_first,
        &of_name,
        "shift",
        "from",
        "to",
        "p",
        "p adjusted",
        "",
    ];
    let mut table = HtmlTable::of_numbers(&format!("{name} against {first}"), headings);
    for group in &comparison.groups {
        let stars = stars(alternative.p_value(&group.adjusted));
        let [other, base] = group.comparison.medians.map(units::time);
        let found = shift(group);
        let share = |pick: fn(&(f64, Interval)) -> f64| {
            found
                .as_ref()
                .map_or("–".to_owned(), |found| units::percent(pick(found)))
        };
        let cells = [
            group.key.operation.clone(),
            units::bytes(group.key.bytes),
            group.key.ranks.to_string(),
            base,
            other,
            share(|(share, _)| *share),
            share(|(_, interval)| interval.low),
            share(|(_, interval)| interval.high),
            probability(alternative.p_value(&group.comparison.mann_whitney.p)),
            probability(alternative.p_value(&group.adjusted)),
            stars.to_owned(),
        ];
        if stars.is_empty() {
            table.row(cells);
        } else {
            table.marked_row(cells);
        }
    }
    table
}
