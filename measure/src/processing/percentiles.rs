//! Percentiles of run-times: what most calls take at most, as services and schedulers need it.

use super::figure::{Figure, ProcessedCalls};
use crate::error::MeasureError;
use downbeat_records::stats::Sample;

/// Percentile of [`Percentiles`](super::Processing::Percentiles).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// Name of the figure.
    pub name: &'static str,
    /// Share of the run-times below it.
    pub share: f64,
    /// Least number of run-times, of which about ten are above it: with fewer, it is that of a few disturbed calls.
    pub least: usize,
}

impl Percentile {
    /// All percentiles that are reported, ascending.
    pub const ALL: [Self; 4] = [
        Self::new("p50", 0.5, 1),
        Self::new("p90", 0.9, 100),
        Self::new("p99", 0.99, 1_000),
        Self::new("p99.9", 0.999, 10_000),
    ];

    const fn new(name: &'static str, share: f64, least: usize) -> Self {
        Self { name, share, least }
    }
}

pub(super) fn figures(run_times: &[f64]) -> Result<ProcessedCalls, MeasureError> {
    let mut times = run_times.to_vec();
    let sample = Sample::new(&mut times)?;
    let percentiles = Percentile::ALL
        .into_iter()
        .filter(|one| sample.len() >= one.least)
        .map(|one| Figure::new(one.name, sample.quantile(one.share)));
    let most = Figure::new("max", sample.quantile(1.0));
    Ok(percentiles.chain([most]).collect::<Vec<_>>().into())
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{expect, five_calls, global, local};
    use super::*;

    #[test]
    fn percentiles_need_ten_run_times_above_them() {
        let names = |count: u32| {
            let times: Vec<f64> = (0..count).map(f64::from).collect();
            let figures = figures(&times).unwrap().figures;
            figures.iter().map(|figure| figure.name).collect::<Vec<_>>()
        };
        assert_eq!(names(99), ["p50", "max"]);
        assert_eq!(names(999), ["p50", "p90", "max"]);
        assert_eq!(names(9_999), ["p50", "p90", "p99", "max"]);
        assert_eq!(names(10_000), ["p50", "p90", "p99", "p99.9", "max"]);
    }

    #[test]
    fn percentiles_are_those_of_run_times() {
        expect(
            "percentiles",
            &global(&five_calls()),
            0,
            &[("p50", 40.0), ("max", 50.0)],
        );
        let calls: Vec<[i64; 1]> = (0..=10_000).map(|time| [time]).collect();
        let calls: Vec<&[i64]> = calls.iter().map(<[i64; 1]>::as_slice).collect();
        let by_hand = [
            ("p50", 5_000.0),
            ("p90", 9_000.0),
            ("p99", 9_900.0),
            ("p99.9", 9_990.0),
            ("max", 10_000.0),
        ];
        expect("percentiles", &local(&calls), 0, &by_hand);
    }
}
