//! Barriers as a page, as figures 7 to 9 of Hunold and Carpen-Amarie 2018: how far apart ranks leave them, and what methods measure behind
//! them.

use downbeat_common::Table;
use downbeat_common::bench::BenchResults;
use downbeat_common::page::Page;
use downbeat_common::page::axis::{Axis, range};
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::interval::IntervalTime;
use downbeat_common::page::sizes::{self, SizeLine};
use downbeat_common::page::svg::Picture;
use downbeat_common::records::distinct;
use downbeat_common::units::{self, joined};

use super::table::{ImbalanceQuantiles, ImbalanceResults, ReportedLatency};

/// Quantiles that are drawn.
const QUANTILES: [&str; 4] = ["lower quartile", "median", "upper quartile", "95 %"];

impl ImbalanceResults {
    /// Returns the page.
    pub(super) fn page(&self, results: &BenchResults) -> Page {
        let mut page = Page::default();
        page.section("imbalance", "Imbalance of barriers");
        page.note(
            "Time from the first rank that leaves a barrier to the last; all ranks began it at one instant of the global clock.",
        );
        page.pictures([("imbalance", self.imbalance_picture())]);
        page.table("Barriers", &self.barriers());
        if let Some(what) = self.latency_title() {
            page.section("latency", &what);
            page.note(
                "As each method reports it behind each barrier: a method whose values depend on the barrier measures it, too.",
            );
            if self.sizes().len() > 1 {
                page.pictures(self.latencies_over_sizes(&what));
            } else {
                page.pictures([("latency", self.latency_picture(&what))]);
            }
            page.table("Latencies", &self.latencies());
        }
        page.section("conditions", "Conditions");
        let factors = Table::of(results.factors().iter())
            .column("factor", |(name, _)| (*name).to_owned())
            .column("value", |(_, value)| (*value).to_owned());
        page.text_table("Factors", &factors.table());
        page
    }

    fn imbalance_picture(&self) -> Option<Picture> {
        let row = |(barrier, quantiles): (&str, ImbalanceQuantiles)| {
            let ImbalanceQuantiles {
                median,
                q1,
                q3,
                p95,
                ..
            } = quantiles;
            let dots = (0..).zip([q1, median, q3, p95]).zip(QUANTILES);
            let dots = dots.map(|((series, value), name)| Dot {
                series,
                value,
                text: format!("{barrier}: {name} {}", units::time(value)),
            });
            DotRow {
                label: barrier.to_owned(),
                dots: dots.collect(),
            }
        };
        let rows: Vec<DotRow> = self.quantiles().map(row).collect();
        picture(
            "Imbalance",
            "imbalance",
            &QUANTILES.map(str::to_owned),
            &rows,
        )
    }

    fn latency_picture(&self, title: &str) -> Option<Picture> {
        let methods = distinct(self.reported().map(|one| one.method));
        let barriers = distinct(self.reported().map(|one| one.barrier)).into_iter();
        let rows = barriers.map(|barrier| {
            let reported = self.reported().filter(|one| one.barrier == barrier);
            let dots = reported.filter_map(|ReportedLatency { method, nanos, .. }| {
                Some(Dot {
                    series: methods.iter().position(|known| *known == method)?,
                    value: nanos,
                    text: format!("{method} behind {barrier}: {}", units::time(nanos)),
                })
            });
            DotRow {
                label: barrier.to_owned(),
                dots: dots.collect(),
            }
        });
        let rows: Vec<DotRow> = rows.collect();
        let methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
        picture(title, "latency", &methods, &rows)
    }

    /// Draws what methods report over sizes, for each barrier; returns pictures with the names of their files.
    fn latencies_over_sizes(&self, title: &str) -> Vec<(String, Option<Picture>)> {
        let barriers = distinct(self.reported().map(|one| one.barrier));
        let draw = |(number, barrier): (usize, &str)| {
            let reported = || self.reported().filter(|one| one.barrier == barrier);
            let lines = distinct(reported().map(|one| one.method)).into_iter();
            let lines = lines.map(|method| {
                let points = reported().filter(|one| one.method == method);
                let time = |nanos| IntervalTime {
                    nanos,
                    interval: None,
                };
                SizeLine {
                    name: method.to_owned(),
                    points: points.map(|one| (one.bytes, time(one.nanos))).collect(),
                }
            });
            let lines: Vec<SizeLine> = lines.collect();
            let title = format!("{title} behind {barrier}");
            (
                format!("latency-{}", number + 1),
                sizes::picture(title, "latency", &lines),
            )
        };
        barriers.into_iter().enumerate().map(draw).collect()
    }
}

fn picture(title: &str, quantity: &str, names: &[String], rows: &[DotRow]) -> Option<Picture> {
    let dots = || rows.iter().flat_map(|row| &row.dots);
    let [low, high] = range(dots().map(|dot| dot.value))?;
    dot_rows::picture(
        title.to_owned(),
        joined(dots().map(|dot| &dot.text), "; "),
        Axis::times(quantity, low, high, 5),
        "barrier",
        names,
        rows,
    )
}
