//! Figures, and what several processings compute.

use downbeat_records::stats::{BatchMeans, Confidence, Sample, StatsError};

/// Figure that is computed from all times of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum PerRank {
    Mean,
    Median,
    Min,
    Max,
}

/// Figure that a benchmark reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Name, without blanks and `=`.
    pub name: &'static str,
    /// Value in nanoseconds.
    pub nanos: f64,
}

impl Figure {
    pub(super) const fn new(name: &'static str, nanos: f64) -> Self {
        Self { name, nanos }
    }
}

impl PerRank {
    /// Computes the figure.
    pub(crate) fn of(self, times: &mut [f64]) -> Result<f64, StatsError> {
        let sample = Sample::new(times)?;
        Ok(match self {
            Self::Mean => sample.mean(),
            Self::Median => sample.median(),
            Self::Min => sample.quantile(0.0),
            Self::Max => sample.quantile(1.0),
        })
    }
}

/// Mean, minimum and maximum, which most benchmarks report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extremes {
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Extremes {
    pub(super) fn of(sample: &Sample<'_>) -> Self {
        Self {
            mean: sample.mean(),
            min: sample.quantile(0.0),
            max: sample.quantile(1.0),
        }
    }

    pub(super) fn figures(&self) -> [Figure; 3] {
        [
            Figure::new("mean", self.mean),
            Figure::new("min", self.min),
            Figure::new("max", self.max),
        ]
    }
}

/// Returns the limits of the mean's confidence interval, by batch means; nothing if these give no reliable one. The times are in
/// the order of the calls.
pub(super) fn interval_of_mean(
    times: &[f64],
    confidence: Confidence,
) -> impl Iterator<Item = Figure> + use<> {
    let means: BatchMeans = times.iter().copied().collect();
    let interval = means.interval(confidence).ok();
    interval.into_iter().flat_map(|at| {
        [
            Figure::new("mean-low", at.low),
            Figure::new("mean-high", at.high),
        ]
    })
}
