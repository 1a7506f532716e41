//! Comparison of algorithms run by run: runs of one number had the same clocks, or followed each other on one machine.

use std::collections::BTreeMap;

use downbeat_records::stats::{Confidence, SignedRank, holm, stars};
use serde::Serialize;

use super::{CheckRecord, RunRecord, labels};
use crate::output::probability;
use crate::table::Table;
use crate::text::Text;

/// Comparisons of each algorithm with the first, after each wait.
#[derive(Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct PairedRuns {
    comparisons: Vec<PairedComparison>,
    /// Number of algorithms that ran.
    #[serde(skip)]
    algorithms: usize,
}

/// Errors of an algorithm as a multiple of those of another, in runs of the same numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct PairedComparison {
    algorithm: String,
    compared_with: String,
    after_s: f64,
    /// True errors where they are known, otherwise measured offsets.
    of: &'static str,
    runs: usize,
    /// Ratio of the largest errors, and its interval of 95 %.
    ratio: f64,
    low: f64,
    high: f64,
    /// By the signed ranks of the ratios' logarithms.
    p: f64,
    /// The same, by Holm, for all comparisons.
    adjusted_p: f64,
}

/// Fewer runs can neither be significant nor have an interval of 95 %.
const LEAST_RUNS: usize = 6;

impl PairedRuns {
    /// Compares the runs of all algorithms with those of the first; nothing if there are fewer than 6.
    pub(super) fn new(records: &[RunRecord]) -> Self {
        let labels = labels(records);
        let (first, others) = labels.split_first().unwrap_or((&"", &[]));
        let waits = records.first().map_or(0, |record| record.checks.len());
        let pairs = others
            .iter()
            .flat_map(|other| (0..waits).map(move |wait| (other, wait)));
        let mut comparisons: Vec<PairedComparison> = pairs
            .filter_map(|(other, wait)| PairedComparison::new(records, [other, first], wait))
            .collect();
        let p: Vec<f64> = comparisons.iter().map(|one| one.p).collect();
        for (one, adjusted) in comparisons.iter_mut().zip(holm(&p)) {
            one.adjusted_p = adjusted;
        }
        Self {
            comparisons,
            algorithms: labels.len(),
        }
    }

    /// Returns the comparisons as a table with its explanation; a hint where more runs are needed; nothing for one algorithm.
    pub(super) fn text(&self) -> Text {
        if self.algorithms < 2 {
            return Text::default();
        }
        let Some(PairedComparison {
            of, compared_with, ..
        }) = self.comparisons.first()
        else {
            return Text::from(format!(
                "\nToo few runs to tell algorithms apart: --repeat {LEAST_RUNS} or more compares them run by run.\n"
            ));
        };
        let mut text = Text::from(format!(
            "\nThe largest {of}, relative to {compared_with}:\n\n"
        ));
        text += Table::of(&self.comparisons)
            .column("algorithm", |one| one.algorithm.clone())
            .column("after", |one| format!("{} s", one.after_s))
            .column("ratio", |one| ratio(one.ratio))
            .column("95 % interval", |one| {
                format!("{} to {}", ratio(one.low), ratio(one.high))
            })
            .column("p, adjusted", |one| {
                let p = one.adjusted_p;
                format!("{} {}", probability(p), stars(p))
                    .trim_end()
                    .to_owned()
            })
            .named_by(2);
        text += "\nRuns of one number are compared with each other: by Wilcoxon's signed-rank test, p adjusted by Holm.\n";
        text
    }
}

fn ratio(ratio: f64) -> String {
    let digits = if ratio < 0.095 { 5 } else { 2 };
    format!("{ratio:.digits$}")
}

impl PairedComparison {
    /// Compares the first of two algorithms with the second.
    fn new<'a>(
        records: &'a [RunRecord],
        [other, first]: [&'a str; 2],
        wait: usize,
    ) -> Option<Self> {
        let of_label = |label: &'a str| {
            let of_label = records.iter().filter(move |one| one.algorithm == label);
            of_label.filter_map(|record| Some((record.run, record.checks.get(wait)?)))
        };
        let of_first: BTreeMap<u32, &CheckRecord> = of_label(first).collect();
        let pairs: Vec<[&CheckRecord; 2]> = of_label(other)
            .filter_map(|(run, check)| Some([check, of_first.get(&run)?]))
            .collect();
        let is_true = pairs
            .iter()
            .flatten()
            .all(|check| check.largest_error.is_some());
        let logarithm = |check: &CheckRecord| {
            let largest = match is_true {
                true => check.largest_error,
                false => check.largest_offset,
            };
            // Whole nanoseconds: a zero may be half of one.
            Some((largest?.ns.unsigned_abs() as f64).max(0.5).ln())
        };
        let differences: Vec<f64> = pairs
            .iter()
            .filter_map(|[other, first]| Some(logarithm(other)? - logarithm(first)?))
            .collect();
        if differences.len() < LEAST_RUNS {
            return None;
        }
        let found = SignedRank::new(&differences, Confidence::USUAL).ok()?;
        Some(Self {
            algorithm: other.to_owned(),
            compared_with: first.to_owned(),
            after_s: pairs.first()?[0].after_s,
            of: match is_true {
                true => "true error",
                false => "measured offset",
            },
            runs: differences.len(),
            ratio: found.shift.exp(),
            low: found.interval.low.exp(),
            high: found.interval.high.exp(),
            p: found.p.two_sided,
            adjusted_p: 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::table::TableForm;

    /// Runs of three algorithms: one is twice as wrong as the first in each run, and one as wrong on average.
    fn records(runs: u32) -> Vec<RunRecord> {
        let run = |run: u32| {
            let error = 100 * i64::from(run);
            let equal = if run.is_multiple_of(2) {
                error * 2
            } else {
                error / 2
            };
            [("first", error), ("double", -2 * error), ("equal", equal)]
                .map(|(label, error)| record(label, run, 1, Some(error)))
        };
        (1..=runs).flat_map(run).collect()
    }

    #[test]
    fn a_ratio_that_all_runs_have_is_found() {
        let found = PairedRuns::new(&records(8)).comparisons;
        let of = found
            .iter()
            .map(|one| (one.algorithm.as_str(), one.after_s));
        let expected = [
            ("double", 0.0),
            ("double", 10.0),
            ("equal", 0.0),
            ("equal", 10.0),
        ];
        assert!(of.eq(expected), "{found:?}");
        let (double, equal) = (&found[0], &found[2]);
        assert!((double.ratio - 2.0).abs() < 1e-9 && (double.low - 2.0).abs() < 1e-9);
        assert_eq!(
            (double.p, double.adjusted_p, double.of),
            (0.007_812_5, 0.031_25, "true error")
        );
        assert!(
            (equal.ratio - 1.0).abs() < 1e-9 && equal.p > 0.5,
            "{equal:?}"
        );
    }

    #[test]
    fn few_runs_are_not_compared() {
        let shown = |records: &[RunRecord]| {
            PairedRuns::new(records)
                .text()
                .render(TableForm::Text, None)
        };
        assert_eq!(PairedRuns::new(&records(5)).comparisons, []);
        assert!(shown(&records(5)).contains("--repeat 6"));
        assert!(shown(&records(6)).contains("relative to first"));
        let one: Vec<RunRecord> = (1..9).map(|run| record("only", run, 1, None)).collect();
        assert_eq!(shown(&one), "");
    }
}
