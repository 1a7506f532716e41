//! Observations in the order in which they were made.

use crate::report::measured::{Experiments, MeasuredOperation, kept, shown_sizes};
use crate::report::run_order::{self, OrderSpan};
use downbeat_common::page::Page;
use downbeat_common::page::svg::Picture;
use downbeat_common::page::units;

pub(super) fn write(page: &mut Page, experiments: &Experiments, kinds: &[MeasuredOperation]) {
    page.section("order", "Observations in their order");
    page.note(
        "Every observation is there: a column of the picture reaches from the least to the greatest of those that fall \
         into it. The dark line is the course of the median, in the band that has half of the observations; a line that is not \
         level is drift. What is above the dashed \
         line is far from the usual, and spaced by its ratio to it.",
    );
    let shown = shown_sizes(kinds.len());
    for kind in kinds {
        page.subsection(&kind.title());
        let (first, more) = match &kind.some_sizes(shown)[..] {
            [] => continue,
            [first, more @ ..] => (*first, more.to_vec()),
        };
        page.pictures(of_size(experiments, kind, first));
        if !more.is_empty() {
            let pictures = more
                .into_iter()
                .flat_map(|bytes| of_size(experiments, kind, bytes));
            page.folded(&format!("More sizes of {}", kind.title()), |page| {
                page.pictures(pictures)
            });
        }
    }
}

/// A picture of each experiment, and from what the name of its file is made.
fn of_size(
    experiments: &Experiments,
    kind: &MeasuredOperation,
    bytes: u64,
) -> Vec<(String, Option<Picture>)> {
    let key = kind.key(bytes);
    let all: Vec<Vec<&[f64]>> = experiments
        .all
        .iter()
        .map(|measured| measured.observations(&key))
        .collect();
    let span = span(&all);
    let picture = |(series, (launches, name)): (usize, (&Vec<&[f64]>, String))| {
        let of = if all.len() > 1 {
            format!(": {name}")
        } else {
            String::new()
        };
        let title = format!("{}, {}{of}", kind.title(), units::bytes(bytes));
        let name = format!(
            "order-{}-{}-{bytes}-{}",
            kind.operation,
            kind.ranks,
            series + 1
        );
        (name, run_order::picture(title, series, launches, span))
    };
    all.iter()
        .zip(experiments.names())
        .enumerate()
        .map(picture)
        .collect()
}

/// What the observations of all experiments span.
fn span(all: &[Vec<&[f64]>]) -> OrderSpan {
    let launches = || all.iter().flatten();
    let each = || launches().copied().flatten().copied();
    OrderSpan {
        least: each().fold(f64::INFINITY, f64::min),
        usual: launches()
            .filter_map(|nanos| kept(nanos).last().copied())
            .fold(f64::NEG_INFINITY, f64::max),
        greatest: each().fold(f64::NEG_INFINITY, f64::max),
    }
}
