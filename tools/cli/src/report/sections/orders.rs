//! Observations in order of measurement.

use crate::report::measured::{
    Experiments, MeasuredExperiment, MeasuredOperation, shown_sizes, without_outliers,
};
use crate::report::run_order::{self, OrderSpan};
use downbeat_common::page::Page;
use downbeat_common::page::axis::range;
use downbeat_common::page::svg::Picture;

pub(super) fn write(page: &mut Page, experiments: &Experiments, operations: &[MeasuredOperation]) {
    page.section("order", "Observations in their order");
    page.note(
        "All observations are shown: a column extends from the smallest to the largest observation in it. The dark line \
         is the median over time, in the band between the quartiles, and the dotted one the mean without outliers; a slope is drift. Observations above the dashed \
         line are outliers, on a logarithmic scale.",
    );
    let shown = shown_sizes(operations.len());
    for operation in operations {
        page.subsection(&operation.title());
        let (first, more) = match &operation.some_sizes(shown)[..] {
            [] => continue,
            [first, more @ ..] => (*first, more.to_vec()),
        };
        page.pictures(pictures(experiments, operation, first));
        if !more.is_empty() {
            let more = more
                .into_iter()
                .flat_map(|bytes| pictures(experiments, operation, bytes));
            page.folded(&format!("More sizes of {}", operation.title()), |page| {
                page.pictures(more);
            });
        }
    }
}

/// Draws each experiment; returns pictures with the names of their files.
fn pictures(
    experiments: &Experiments,
    operation: &MeasuredOperation,
    bytes: u64,
) -> Vec<(String, Option<Picture>)> {
    let key = operation.key(bytes);
    let all: Vec<Vec<&[f64]>> = experiments
        .all
        .iter()
        .map(|measured| measured.observations(&key))
        .collect();
    let steps = experiments.all.iter().map(MeasuredExperiment::clock_step);
    let span = span(&all, steps.fold(0.0, f64::max));
    let picture = |(series, (launches, name)): (usize, (&Vec<&[f64]>, String))| {
        let title = operation.title_of_size(bytes) + &experiments.suffix(&name);
        let name = operation.file_of_size("order", bytes);
        let name = format!("{name}-{}", series + 1);
        (name, run_order::picture(title, series, launches, span))
    };
    all.iter()
        .zip(experiments.names())
        .enumerate()
        .map(picture)
        .collect()
}

/// Returns the range of the observations of all experiments.
fn span(all: &[Vec<&[f64]>], step: f64) -> OrderSpan {
    let launches = all.iter().flatten().copied();
    let [least, greatest] = range(launches.clone().flatten().copied()).unwrap_or_default();
    let kept = launches.filter_map(|nanos| without_outliers(nanos, step).last().copied());
    OrderSpan {
        least,
        usual: kept.fold(f64::NEG_INFINITY, f64::max),
        greatest,
    }
}
