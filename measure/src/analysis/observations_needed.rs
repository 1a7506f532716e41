//! How many observations a launch needs, so that its mean is normal: figure 2 of the 2016 paper, for an experiment.

use super::Outliers;
use crate::{Group, GroupKey, MeansOfSize, SampleError, SampleSizeCheck, TestError};

/// How many observations one launch needs in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationsNeeded {
    /// What was measured.
    pub key: GroupKey,
    /// How many observations the launch has, without outliers if these are set aside.
    pub observations: usize,
    /// The first of the sizes whose means look normal; `None` if those of none do.
    pub smallest: Result<Option<MeansOfSize>, TestError>,
}

impl ObservationsNeeded {
    /// Tries the sizes on the observations of one group of a launch.
    ///
    /// # Errors
    /// When an observation is not finite.
    pub fn of(group: &Group, check: &SampleSizeCheck, outliers: Outliers) -> Result<Self, SampleError> {
        let mut nanos = group.nanos.clone();
        let (observations, smallest) = match outliers.kept(&mut nanos)? {
            Some(kept) => (kept.len(), check.smallest(&kept)),
            None => (0, Err(TestError::TooFew { needed: 1, found: 0 })),
        };
        Ok(Self { key: group.key.clone(), observations, smallest })
    }
}
