//! Observations in the order in which they were made.

use super::shown_sizes;
use crate::report::measured::{Experiments, Kind, Measured, kept};
use crate::report::page::Page;
use crate::report::{run_order, svg::Picture, units};

pub(super) fn write(page: &mut Page, experiments: &Experiments, kinds: &[Kind]) {
    page.section("order", "Observations in their order");
    page.note(
        "Every observation is there: a column of the picture reaches from the least to the greatest of those that fall \
         into it. The dark line is the course of the median; a line that is not level is drift. What is above the dashed \
         line is far from the usual, and spaced by its ratio to it.",
    );
    let shown = shown_sizes(kinds.len());
    for kind in kinds {
        page.subsection(&kind.title());
        let sizes = kind.some_sizes(shown);
        let of = |bytes: u64| {
            experiments.all.iter().enumerate().map(move |(i, measured)| picture(experiments, i, measured, kind, bytes))
        };
        page.pictures(sizes.iter().take(1).flat_map(|bytes| of(*bytes)));
        if sizes.len() > 1 {
            let more = format!("More sizes of {}", kind.title());
            page.folded(&more, |page| page.pictures(sizes[1..].iter().flat_map(|bytes| of(*bytes))));
        }
    }
}

fn picture(
    experiments: &Experiments,
    series: usize,
    measured: &Measured,
    kind: &Kind,
    bytes: u64,
) -> (String, Option<Picture>) {
    let launches = measured.observations(&kind.key(bytes));
    let usual = launches.iter().filter_map(|nanos| kept(nanos).last().copied()).fold(f64::MIN, f64::max);
    let of = if experiments.all.len() > 1 { format!(": {}", measured.name) } else { String::new() };
    let title = format!("{}, {}{of}", kind.title(), units::bytes(bytes));
    let name = format!("order-{}-{}-{bytes}-{}", kind.operation, kind.ranks, series + 1);
    (name, run_order::picture(title, series, &launches, usual))
}
