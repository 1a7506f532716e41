//! How many observations a launch needs, so that its mean is normal: figure 2 of the 2016 paper, for an experiment.

use super::settings::Outliers;
use crate::RecordError;
use crate::stats::{MeansOfSize, SampleSizeCheck, StatsError};
use crate::{GroupKey, MeasuredGroup};

/// How many observations one launch needs in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationsNeeded {
    /// What was measured.
    pub key: GroupKey,
    /// How many observations the launch has, without outliers if these are set aside.
    pub observations: usize,
    /// The first of the sizes whose means look normal; `None` if those of none do.
    pub smallest: Result<Option<MeansOfSize>, StatsError>,
}

impl ObservationsNeeded {
    /// Tries the sizes on the observations of one group of a launch.
    ///
    /// # Errors
    /// When an observation is no time; the launch has a name for this.
    pub fn new(
        launch: &str,
        group: &MeasuredGroup,
        check: &SampleSizeCheck,
        outliers: Outliers,
    ) -> Result<Self, RecordError> {
        let mut nanos = group.nanos.clone();
        let (observations, smallest) = match outliers.kept(launch, &group.key, &mut nanos)? {
            Some(kept) => (kept.len(), check.smallest(&kept)),
            None => (
                0,
                Err(StatsError::TooFew {
                    needed: 1,
                    found: 0,
                }),
            ),
        };
        Ok(Self {
            key: group.key.clone(),
            observations,
            smallest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::group;
    use super::*;

    #[test]
    fn each_launch_is_asked_for_itself() {
        let nanos: Vec<f64> = (0..500_u32)
            .map(|i| f64::from(i % 7) + if i % 50 == 0 { 300.0 } else { 0.0 })
            .collect();
        let check = SampleSizeCheck {
            sizes: vec![10, 30, 100],
            means: 200,
            level: 0.05,
            seed: 1,
        };
        let found =
            ObservationsNeeded::new("a", &group(8, &nanos), &check, Outliers::Tukey).unwrap();
        assert_eq!(found.observations, 490);
        assert_eq!(found.smallest.unwrap().unwrap().size(), 10);
        let all = ObservationsNeeded::new("a", &group(8, &nanos), &check, Outliers::Keep).unwrap();
        assert_eq!((all.observations, all.smallest), (500, Ok(None)));

        let none = ObservationsNeeded::new("a", &group(8, &[]), &check, Outliers::Keep).unwrap();
        assert_eq!(
            (none.observations, none.smallest),
            (
                0,
                Err(StatsError::TooFew {
                    needed: 1,
                    found: 0
                })
            )
        );
        let same =
            ObservationsNeeded::new("a", &group(8, &[5.0; 9]), &check, Outliers::Keep).unwrap();
        assert_eq!(same.smallest, Err(StatsError::NoSpread));
        let infinite =
            ObservationsNeeded::new("a", &group(8, &[f64::INFINITY]), &check, Outliers::Keep);
        assert!(matches!(infinite, Err(RecordError::InvalidTime { launch, .. }) if launch == "a"));
    }
}
