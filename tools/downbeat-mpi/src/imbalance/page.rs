//! Barriers as a page, as figures 7 to 9 of Hunold and Carpen-Amarie 2018: how far apart ranks leave them, and what methods measure behind
//! them.

use downbeat_common::bench::BenchResults;
use downbeat_common::page::axis::{Axis, size_place};
use downbeat_common::page::curves::{self, Curve};
use downbeat_common::page::dot_rows::{self, Dot, DotRow};
use downbeat_common::page::frame::data_width;
use downbeat_common::page::svg::{Picture, text_width};
use downbeat_common::page::{HtmlTable, Page};
use downbeat_common::units;

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
        page.pictures([("imbalance".to_owned(), self.imbalance_picture())]);
        page.table(&HtmlTable::of_table("Barriers", &self.barriers()));
        if let Some(what) = self.latency_title() {
            page.section("latency", &what);
            page.note(
                "As each method reports it behind each barrier: a method whose values depend on the barrier measures it, too.",
            );
            if self.sizes().len() > 1 {
                page.pictures(self.latencies_over_sizes(&what));
            } else {
                page.pictures([("latency".to_owned(), self.latency_picture(&what))]);
            }
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
        for one in self.reported() {
            let ReportedLatency {
                method,
                barrier,
                nanos,
                ..
            } = one;
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

    /// Draws what methods report over sizes, for each barrier; returns pictures with the names of their files.
    fn latencies_over_sizes(&self, title: &str) -> Vec<(String, Option<Picture>)> {
        let mut barriers: Vec<&str> = Vec::new();
        for one in self.reported() {
            if !barriers.contains(&one.barrier) {
                barriers.push(one.barrier);
            }
        }
        let draw = |(number, barrier): (usize, &str)| {
            let mut methods: Vec<Curve> = Vec::new();
            for one in self.reported().filter(|one| one.barrier == barrier) {
                let point = (size_place(one.bytes), one.nanos);
                match methods.iter_mut().find(|curve| curve.name == one.method) {
                    Some(curve) => curve.points.push(point),
                    None => methods.push(Curve {
                        name: one.method.to_owned(),
                        points: vec![point],
                    }),
                }
            }
            let title = format!("{title} behind {barrier}");
            (
                format!("latency-{}", number + 1),
                over_sizes(title, &self.sizes(), &methods),
            )
        };
        barriers.into_iter().enumerate().map(draw).collect()
    }
}

fn over_sizes(title: String, sizes: &[u64], methods: &[Curve]) -> Option<Picture> {
    let points = || methods.iter().flat_map(|curve| &curve.points);
    let low = points().map(|(_, nanos)| *nanos).reduce(f64::min)?;
    let high = points().map(|(_, nanos)| *nanos).reduce(f64::max)?;
    let axes = [
        Axis::sizes(sizes, data_width(text_width("10000"))),
        Axis::times("latency", low, high, 5),
    ];
    let described: Vec<String> = methods
        .iter()
        .filter_map(|curve| {
            let [first, last] =
                [curve.points.first()?, curve.points.last()?].map(|(_, nanos)| units::time(*nanos));
            Some(format!("{}: from {first} to {last}.", curve.name))
        })
        .collect();
    curves::picture(title, described.join(" "), axes, methods)
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
