//! Figures, and what several processings compute.

use downbeat_records::Observations;
use downbeat_records::stats::{BatchMeans, Confidence, Sample};

use crate::error::MeasureError;

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

/// Returns the times of one rank in all valid calls.
pub(super) fn rank_times(observations: &Observations, rank: usize) -> Vec<f64> {
    observations
        .valid()
        .map(|call| observations.time(call, rank))
        .collect()
}

/// Returns the time of the slowest rank in each valid call. The run-time is longer, as it begins with the first rank.
pub(super) fn slowest_times(observations: &Observations) -> Vec<f64> {
    let slowest = |call| {
        (0..observations.ranks())
            .map(|rank| observations.time(call, rank))
            .fold(f64::MIN, f64::max)
    };
    observations.valid().map(slowest).collect()
}

/// Returns the mean of every rank's times.
pub(super) fn rank_means(observations: &Observations) -> Result<Vec<f64>, MeasureError> {
    (0..observations.ranks())
        .map(|rank| Ok(Sample::new(&mut rank_times(observations, rank))?.mean()))
        .collect()
}

pub(super) fn least(sample: &Sample<'_>) -> f64 {
    sample.quantile(0.0)
}

pub(super) fn greatest(sample: &Sample<'_>) -> f64 {
    sample.quantile(1.0)
}

/// Returns mean, minimum and maximum, which most benchmarks report.
pub(super) fn mean_and_extremes(sample: &Sample<'_>) -> Vec<Figure> {
    let (mean, min, max) = (sample.mean(), least(sample), greatest(sample));
    vec![
        Figure::new("mean", mean),
        Figure::new("min", min),
        Figure::new("max", max),
    ]
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
