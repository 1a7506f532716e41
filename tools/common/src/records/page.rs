//! Synchronizations as a page, as figures 3 to 6 of Hunold and Carpen-Amarie 2018: the accuracy of clocks against the time that the
//! synchronization took.

use super::{CheckRecord, LargestDeviation, RunRecord, labels, table};
use crate::page::Page;
use crate::page::axis::{Axis, range};
use crate::page::scatter::{self, ScatterPoint};
use crate::page::svg::Picture;
use crate::units;

/// A figure of a check, with its name and the heading of its pictures.
type Quantity = (
    &'static str,
    &'static str,
    fn(&CheckRecord) -> Option<LargestDeviation>,
);

const QUANTITIES: [Quantity; 2] = [
    ("largest offset", "Largest offset of any rank", |check| {
        check.largest_offset
    }),
    (
        "largest true error",
        "Largest true error of any rank",
        |check| check.largest_error,
    ),
];

/// Returns the page of some runs, with notes below the pictures.
pub(super) fn page<'a>(runs: &[RunRecord], notes: impl IntoIterator<Item = &'a str>) -> Page {
    let mut page = Page::default();
    page.section("accuracy", "Accuracy and duration");
    page.note(
        "Each point is a run: further left is faster, further down is more accurate. Both axes are logarithmic where values differ much.",
    );
    let checks = runs.iter().map(|run| run.checks.len()).max().unwrap_or(0);
    for (name, heading, value) in QUANTITIES {
        let pictures: Vec<_> = (0..checks)
            .map(|check| {
                let file = format!("{}-{}", name.replace(' ', "-"), check + 1);
                (file, picture(runs, check, name, value))
            })
            .filter(|(_, picture)| picture.is_some())
            .collect();
        if !pictures.is_empty() {
            page.subsection(heading);
            page.pictures(pictures);
        }
    }
    page.notes(notes);
    page.section("table", "All algorithms");
    page.table("Synchronizations", &table(runs));
    page
}

/// Draws a figure of a check, by its number, of all runs.
fn picture(
    runs: &[RunRecord],
    check: usize,
    name: &str,
    value: fn(&CheckRecord) -> Option<LargestDeviation>,
) -> Option<Picture> {
    let labels = labels(runs);
    let point = |run: &RunRecord| {
        let nanos = value(run.checks.get(check)?)?.ns.unsigned_abs() as f64;
        let took = 1e9 * run.duration_s;
        let series = labels.iter().position(|label| *label == run.algorithm)?;
        let text = format!(
            "{}, run {}: took {}, {name} {}",
            run.algorithm,
            run.run,
            units::time(took),
            units::time(nanos)
        );
        // A logarithmic axis has no 0.
        Some(ScatterPoint {
            series,
            at: (took, nanos.max(1.0)),
            interval: None,
            text,
        })
    };
    let points: Vec<ScatterPoint> = runs.iter().filter_map(point).collect();
    let after = runs.first()?.checks.get(check)?.after_s;
    let axis = |label: &str, value: fn(&ScatterPoint) -> f64| {
        let [low, high] = range(points.iter().map(value))?;
        Some(Axis::times(label, low, high, 5))
    };
    let axes = [
        axis("duration of the synchronization", |point| point.at.0)?,
        axis(name, |point| point.at.1)?,
    ];
    let names: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    scatter::picture(
        &format!("{after} s after the synchronization"),
        axes,
        &names,
        &points,
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn every_run_is_a_point_of_each_check() {
        let runs = [
            record("hca", 1, 100, Some(70)),
            record("hca", 2, -300, Some(0)),
            record("jk", 1, 5_000, None),
        ];
        let drawn = |value: fn(&CheckRecord) -> Option<LargestDeviation>| {
            let drawn = picture(&runs, 0, "largest offset", value).unwrap();
            drawn.inline(1)
        };
        let offsets = drawn(|check| check.largest_offset);
        // With those of the legend.
        let markers = |colour: &str| offsets.matches(&format!("class=\"m {colour}\"")).count();
        assert_eq!([markers("c0"), markers("c1")], [3, 2]);
        assert!(offsets.contains("hca, run 2: took 250.0 ms, largest offset 300.0 ns"));
        // One of them is exact, which a logarithmic axis cannot show.
        let errors = drawn(|check| check.largest_error);
        assert!(
            errors.contains("largest offset 0.000 ns") && !errors.contains("NaN"),
            "{errors}"
        );
        assert!(picture(&runs, 9, "none", |check| check.largest_error).is_none());
    }
}
