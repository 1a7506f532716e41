//! Repetitions as a page: figure 12 of Hunold 2016, one picture for each operation and number of ranks.

use downbeat_common::output::percent;
use downbeat_common::page::Page;
use downbeat_common::page::axis::{Axis, linear_ticks};
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::svg::Picture;
use downbeat_common::units;
use downbeat_records::analysis::Reproducibility;

use crate::experiments::{ResultTable, pictures_of_operations};

pub(super) fn page(found: &[Reproducibility], results: &ResultTable) -> Page {
    let mut page = Page::default();
    page.section("trials", "Trials");
    page.note(
        "Each dot is a trial: the mean of its launches, divided by that of the fastest trial. The closer all dots are to 1, the better \
         a measurement repeats.",
    );
    page.pictures(pictures_of_operations(
        found,
        |group| &group.key,
        "trials",
        picture,
    ));
    results.add_to(&mut page, "Spread", "Spread of the trials");
    page
}

/// Draws groups of one operation on one number of ranks.
fn picture(title: String, groups: &[Reproducibility]) -> Option<Picture> {
    let dots = |group: &Reproducibility| DotRow {
        label: units::bytes(group.key.bytes),
        dots: group
            .trials
            .iter()
            .filter_map(|trial| {
                let text = format!(
                    "{}, {}: {:.4} times the fastest, {}",
                    trial.trial,
                    units::bytes(group.key.bytes),
                    trial.ratio?,
                    units::time(trial.mean)
                );
                Some(Dot {
                    series: 0,
                    value: trial.ratio?,
                    text,
                })
            })
            .collect(),
    };
    let rows: Vec<DotRow> = groups.iter().map(dots).collect();
    let most = rows.iter().flat_map(|row| &row.dots);
    let most = most.map(|dot| dot.value).fold(1.0, f64::max);
    // Dots at the ends are whole.
    let margin = (0.03 * (most - 1.0)).max(1e-3);
    let (low, high) = (1.0 - margin, most + margin);
    let x = Axis::exact(
        "mean of a trial / smallest",
        low,
        high,
        linear_ticks(low, high, 6),
    );
    let described = groups.iter().map(|group| {
        let spread = group.spread().map_or("–".to_owned(), percent);
        format!("{}: spread {spread}.", units::bytes(group.key.bytes))
    });
    dot_rows::picture(
        title,
        units::joined(described, " "),
        x,
        "size of a message",
        &[],
        &rows,
    )
}
