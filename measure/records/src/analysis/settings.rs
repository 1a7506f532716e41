//! Settings of an analysis.

use downbeat_clock_core::Duration;

use crate::stats::{Confidence, Sample, StatsError};
use crate::{GroupKey, RecordError};

/// How an experiment is analysed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnalysisSettings {
    /// What becomes of outliers.
    pub outliers: Outliers,
    /// The confidence of intervals.
    pub confidence: Confidence,
    /// To which share of itself, either way, the mean is to be known: this asks for a number of launches.
    pub interval: f64,
}

/// Tukey's filter, intervals of 95 %, and a mean that is to be known to 1 %.
impl Default for AnalysisSettings {
    fn default() -> Self {
        Self {
            outliers: Outliers::Tukey,
            confidence: Confidence::USUAL,
            interval: 0.01,
        }
    }
}

/// What becomes of outliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outliers {
    /// They are observations like others.
    Keep,
    /// They are counted and set aside: what is further than 1.5 times the distance of the quartiles from the nearer of
    /// these, in each launch by itself.
    Tukey,
}

impl Outliers {
    /// As it is written in outputs, with the definition of quartiles, of which there are many.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "kept",
            Self::Tukey => {
                "Tukey's filter per launch: outside [Q1 - 1.5 IQR, Q3 + 1.5 IQR], quartiles by R's type 7"
            }
        }
    }

    /// The observations of a group that count, sorted in place; `None` if there are none.
    pub(super) fn kept<'a>(
        self,
        launch: &str,
        key: &GroupKey,
        nanos: &'a mut [f64],
    ) -> Result<Option<Sample<'a>>, RecordError> {
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
            Self::Keep => Ok(Some(all)),
            Self::Tukey => Ok(Some(all.without_outliers())),
        }
    }
}

/// Whether this is a number of nanoseconds that a clock can tell, so that no sum or square of them overflows.
pub(super) fn is_time(nanos: f64) -> bool {
    nanos.abs() <= Duration::MAX.as_nanos() as f64
}
