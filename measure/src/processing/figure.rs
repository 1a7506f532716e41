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

/// Figures of the valid calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessedCalls {
    /// The first figure is the one to report.
    pub(crate) figures: Vec<Figure>,
    /// Reason why there is no interval of the mean, if the processing has one.
    pub(crate) no_interval: Option<StatsError>,
}

impl From<Vec<Figure>> for ProcessedCalls {
    fn from(figures: Vec<Figure>) -> Self {
        Self {
            figures,
            no_interval: None,
        }
    }
}

impl ProcessedCalls {
    /// Adds the limits of the mean's confidence interval, by batch means, if these give a reliable one. The times are in the order
    /// of the calls.
    pub(super) fn with_interval_of_mean(mut self, times: &[f64], confidence: Confidence) -> Self {
        match BatchMeans::from_iter(times.iter().copied()).interval(confidence) {
            Ok(at) => self.figures.extend([
                Figure::new("mean-low", at.low),
                Figure::new("mean-high", at.high),
            ]),
            Err(why) => self.no_interval = Some(why),
        }
        self
    }
}
