//! Settings of an analysis.

use downbeat_clock_core::Duration;

use crate::stats::{Confidence, Sample, StatsError};
use crate::{GroupKey, RecordError};

/// Settings of an analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnalysisSettings {
    /// Treatment of outliers.
    pub outliers: Outliers,
    /// Confidence of intervals.
    pub confidence: Confidence,
    /// Wanted precision of the mean, as a share of it in either direction; determines the number of
    /// launches needed.
    pub interval: f64,
}

/// Tukey's filter, intervals of 95 %, and a precision of 1 %.
impl Default for AnalysisSettings {
    fn default() -> Self {
        Self {
            outliers: Outliers::Tukey,
            confidence: Confidence::USUAL,
            interval: 0.01,
        }
    }
}

/// Treatment of outliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outliers {
    /// Outliers count as other observations.
    Keep,
    /// Observations that are further from the nearer quartile than 1.5 times the distance between
    /// the quartiles are counted and removed, in each launch separately.
    Tukey,
}

impl Outliers {
    /// Description in outputs, with the definition of quartiles, of which there are several.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "kept",
            Self::Tukey => {
                "Tukey's filter per launch: outside [Q1 - 1.5 IQR, Q3 + 1.5 IQR], quartiles by R's type 7"
            }
        }
    }

    /// Sorts the observations of a group in place and applies the filter, for a clock with this step in nanoseconds; `None`
    /// if there are no observations.
    pub(super) fn kept<'a>(
        self,
        launch: &str,
        key: &GroupKey,
        nanos: &'a mut [f64],
        step: f64,
    ) -> Result<Option<KeptObservations<'a>>, RecordError> {
        let no_time = || RecordError::InvalidTime {
            launch: launch.to_owned(),
            key: key.clone(),
        };
        let all = match Sample::new(nanos) {
            Err(StatsError::Empty) => return Ok(None),
            all => all.map_err(|_| no_time())?,
        };
        let ends = [all.values()[0], all.values()[all.len() - 1]];
        match self {
            _ if !ends.into_iter().all(is_time) => Err(no_time()),
            Self::Keep => Ok(Some(KeptObservations { kept: all, all })),
            Self::Tukey => Ok(Some(KeptObservations {
                kept: all.without_outliers(step),
                all,
            })),
        }
    }
}

/// Observations of a group in one launch, those of them that are no outliers, and all.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptObservations<'a> {
    pub(super) kept: Sample<'a>,
    pub(super) all: Sample<'a>,
}

/// True for a number of nanoseconds that a clock can show, so that no sum or square overflows.
pub(super) fn is_time(nanos: f64) -> bool {
    nanos.abs() <= Duration::MAX.as_nanos() as f64
}
