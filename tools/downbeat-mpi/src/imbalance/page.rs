//! Barriers as a page, as figures 7 and 8 of Hunold and Carpen-Amarie 2018: how far apart ranks leave them, and what methods measure behind
//! them.

use downbeat_common::bench::BenchResults;
use downbeat_common::page::axis::Axis;
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::svg::Picture;
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;

use super::table::{ImbalanceQuantiles, ImbalanceResults};

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
        page.pictures([("imbalance".to_owned(), self.imbalance_picture())]);
        page.table(&HtmlTable::of_table("Barriers", &self.barriers()));
        if let Some(what) = self.latency_title() {
            page.section("latency", &what);
            page.note(
                "As each method reports it behind each barrier: a method whose values depend on the barrier measures it, too.",
            );
            page.pictures([("latency".to_owned(), self.latency_picture(&what))]);
            page.table(&HtmlTable::of_table("Latencies", &self.latencies()));
        }
        page.section("conditions", "Conditions");
        let mut table = HtmlTable::of_text("Factors", ["factor", "value"]);
        for (name, value) in results.factors().iter() {
            table.row([name, value]);
        }
        page.table(&table);
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
        let mut methods: Vec<String> = Vec::new();
        let mut rows: Vec<DotRow> = Vec::new();
        for (method, barrier, nanos) in self.reported() {
            let known = methods.iter().position(|known| known == method);
            let series = known.unwrap_or_else(|| {
                methods.push(method.to_owned());
                methods.len() - 1
            });
            let dot = Dot {
                series,
                value: nanos,
                text: format!("{method} behind {barrier}: {}", units::time(nanos)),
            };
            match rows.iter_mut().find(|row| row.label == barrier) {
                Some(row) => row.dots.push(dot),
                None => rows.push(DotRow {
                    label: barrier.to_owned(),
                    dots: vec![dot],
                }),
            }
        }
        picture(title, "latency", &methods, &rows)
    }
}

fn picture(title: &str, quantity: &str, names: &[String], rows: &[DotRow]) -> Option<Picture> {
    let values = || rows.iter().flat_map(|row| &row.dots).map(|dot| dot.value);
    let low = values().reduce(f64::min)?;
    let high = values().reduce(f64::max)?;
    let texts = rows.iter().flat_map(|row| &row.dots);
    let texts: Vec<&str> = texts.map(|dot| &*dot.text).collect();
    dot_rows::picture(
        title.to_owned(),
        texts.join("; "),
        Axis::times(quantity, low, high, 5),
        "barrier",
        names,
        rows,
    )
}
