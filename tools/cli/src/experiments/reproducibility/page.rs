//! Repetitions as a page: figure 12 of Hunold 2016, one picture for each operation and number of ranks.

use downbeat_common::output::percent;
use downbeat_common::page::axis::{Axis, linear_ticks};
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::svg::Picture;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::{Table, units};
use downbeat_records::analysis::Reproducibility;

pub(super) fn page(
    found: &[Reproducibility],
    table: &Table,
    remarks: &[String],
    explanation: &str,
) -> Page {
    let mut page = Page::default();
    page.section("trials", "Trials");
    page.note(
        "Each dot is a trial: the mean of its launches, divided by that of the fastest trial. The closer all dots are to 1, the better \
         a measurement repeats.",
    );
    let operations = found.chunk_by(|one, two| of_one_operation(one) == of_one_operation(two));
    page.pictures(operations.map(|groups| {
        let (operation, ranks) = of_one_operation(&groups[0]);
        let name = format!("trials-{operation}-{ranks}");
        (name, picture(groups))
    }));
    for remark in remarks {
        page.note(&format!("Note: {remark}."));
    }
    page.section("table", "Spread");
    page.table(&HtmlTable::of_table("Spread of the trials", table));
    for line in explanation.lines() {
        page.note(line);
    }
    page
}

fn of_one_operation(group: &Reproducibility) -> (&str, u32) {
    (&group.key.operation, group.key.ranks)
}

/// Draws groups of one operation on one number of ranks.
fn picture(groups: &[Reproducibility]) -> Option<Picture> {
    let (operation, ranks) = of_one_operation(groups.first()?);
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
    let ranks = units::counted(ranks as usize, "rank", "ranks");
    let described: Vec<String> = groups
        .iter()
        .map(|group| {
            let spread = group.spread().map_or("–".to_owned(), percent);
            format!("{}: spread {spread}.", units::bytes(group.key.bytes))
        })
        .collect();
    dot_rows::picture(
        format!("{operation}, {ranks}"),
        described.join(" "),
        x,
        "size of a message",
        &[],
        &rows,
    )
}
