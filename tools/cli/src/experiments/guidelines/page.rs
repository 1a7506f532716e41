//! Guidelines as one HTML page: the violated ones, their times over sizes, and all others.

use std::collections::BTreeMap;

use downbeat_common::page::Page;
use downbeat_common::page::interval::IntervalTime;
use downbeat_common::page::sizes::{self, SizeLine};
use downbeat_common::units::joined;
use downbeat_records::analysis::{Average, Guideline, GuidelineKind, TestedGuideline};

use super::{GuidelineReport, table};
use crate::experiments::operation_title;

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
        page.table("Violated guidelines", &table(self.violated()));
        page.notes(self.notes().iter().map(|note| format!("{note}.")));
        page.notes(self.explanation().lines());
        page.section("sizes", "Violated guidelines over sizes");
        let quantity = format!("{} run-time", Average::from(self.options.of).name());
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
                    (name, sizes::picture(title, &quantity, &lines))
                }),
        );
        page.section("all", "All tested guidelines");
        page.folded("As a table", |page| {
            page.table("Tested guidelines", &table(self.tested.iter()));
        });
        page
    }

    /// Lines over sizes of both sides, for each guideline that is violated at some size.
    fn plots(&self) -> BTreeMap<Plot<'_>, Vec<SizeLine>> {
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
            let line = |side: usize, name: &str| {
                let points = points.iter().map(|(bytes, medians)| {
                    let time = IntervalTime {
                        nanos: medians[side],
                        interval: None,
                    };
                    (*bytes, time)
                });
                SizeLine {
                    name: name.to_owned(),
                    points: points.collect(),
                }
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
        GuidelineKind::Mockup => joined(
            guideline.others.iter().map(|(key, _)| &key.operation),
            " + ",
        ),
        GuidelineKind::Monotony => "the next larger message".to_owned(),
        GuidelineKind::Split => "several calls with parts of the message".to_owned(),
    }
}
