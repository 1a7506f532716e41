//! Guidelines as one HTML page: the violated ones, their times over sizes, and all others.

use std::collections::BTreeMap;

use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;
use downbeat_records::analysis::{Average, Guideline, GuidelineKind, TestedGuideline};

use super::{GuidelineReport, HEADINGS, cells};
use crate::experiments::operation_title;
use crate::report::interval::IntervalTime;
use crate::report::lines::{self, AverageLine, AveragePoint};

/// An operation on a number of ranks, and the operations on the other side of a guideline.
type Plot<'a> = (&'a str, u32, String);

impl GuidelineReport<'_> {
    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        page.links(&[
            ("violated", "Violated"),
            ("sizes", "Over sizes"),
            ("all", "All"),
        ]);
        page.section("violated", &self.verdict());
        if self.violated().next().is_some() {
            page.table(&table("Violated guidelines", self.violated()));
        }
        for note in self.notes() {
            page.note(&format!("{note}."));
        }
        for line in self.explanation() {
            page.note(&line);
        }
        page.section("sizes", "Violated guidelines over sizes");
        let average = Average::from(self.options.of).name();
        let plots = self.plots();
        if plots.is_empty() {
            page.note("There are none.");
        }
        page.pictures(
            plots
                .into_iter()
                .enumerate()
                .map(|(number, (plot, lines))| {
                    let (operation, ranks, others) = plot;
                    let title = operation_title(&format!("{operation} and {others}"), ranks);
                    let name = format!("guideline-{}-{operation}-{ranks}", number + 1);
                    (name, lines::picture(title, average, &lines))
                }),
        );
        page.section("all", "All tested guidelines");
        page.folded("As a table", |page| {
            page.table(&table("Tested guidelines", self.tested.iter()));
        });
        page
    }

    /// Lines over sizes of both sides, for each guideline that is violated at some size.
    fn plots(&self) -> BTreeMap<Plot<'_>, Vec<AverageLine>> {
        let mut plots = BTreeMap::new();
        for violated in self.violated() {
            let key = &violated.guideline.key;
            let others = other_side(&violated.guideline);
            let same = |one: &&TestedGuideline| {
                let other = &one.guideline.key;
                (&other.operation, other.ranks) == (&key.operation, key.ranks)
                    && other_side(&one.guideline) == others
            };
            let mut points: Vec<(u64, [f64; 2])> = self
                .tested
                .iter()
                .filter(same)
                .map(|one| (one.guideline.key.bytes, one.medians))
                .collect();
            points.sort_unstable_by_key(|(bytes, _)| *bytes);
            let line = |side: usize, name: &str| AverageLine {
                name: name.to_owned(),
                points: points
                    .iter()
                    .map(|(bytes, medians)| AveragePoint {
                        bytes: *bytes,
                        average: IntervalTime {
                            nanos: medians[side],
                            interval: None,
                        },
                    })
                    .collect(),
            };
            let lines = vec![line(0, &key.operation), line(1, &others)];
            plots.insert((&*key.operation, key.ranks, others), lines);
        }
        plots
    }
}

/// Names the other side of a guideline at any size.
fn other_side(guideline: &Guideline) -> String {
    match guideline.kind {
        GuidelineKind::Mockup => {
            let others = guideline.others.iter();
            let names: Vec<&str> = others.map(|(key, _)| &*key.operation).collect();
            names.join(" + ")
        }
        GuidelineKind::Monotony => "the next larger message".to_owned(),
        GuidelineKind::Split => "several calls with parts of the message".to_owned(),
    }
}

fn table<'a>(caption: &str, guidelines: impl Iterator<Item = &'a TestedGuideline>) -> HtmlTable {
    let [others, own, bound, times, p] = HEADINGS;
    let headings = ["operation", "size", "ranks", others, own, bound, times, p];
    let mut table = HtmlTable::of_numbers(caption, headings);
    for one in guidelines {
        let key = &one.guideline.key;
        let key = [
            key.operation.clone(),
            units::bytes(key.bytes),
            key.ranks.to_string(),
        ];
        let row = key.into_iter().chain(cells(one, units::time));
        if one.violated {
            table.marked_row(row);
        } else {
            table.row(row);
        }
    }
    table
}
