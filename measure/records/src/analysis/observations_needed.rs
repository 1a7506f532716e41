//! Number of observations that a launch needs until means are normal: figure 2 of Hunold 2016.

use downbeat_files::Crc32;

use super::settings::Outliers;
use crate::RecordError;
use crate::stats::{MeansOfSize, SampleSizeCheck, StatsError};
use crate::{GroupKey, MeasuredGroup};

/// Number of observations that a launch needs in one group.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationsNeeded {
    /// Key of the group.
    pub key: GroupKey,
    /// Number of observations in the launch, without outliers if these are removed.
    pub observations: usize,
    /// The smallest size from which on means look normal; `None` if there is none.
    pub smallest: Result<Option<MeansOfSize>, StatsError>,
}

impl ObservationsNeeded {
    /// Tries the sizes on the observations of one group of a launch, by a clock with this [step](crate::Launch::clock_step). Each launch
    /// draws its own samples: with the same ones, launches would agree although their observations do not show it.
    ///
    /// # Errors
    /// If an observation is not a number, or longer than 292 years; the error contains the name of
    /// the launch.
    pub fn new(
        launch: &str,
        group: &MeasuredGroup,
        check: &SampleSizeCheck,
        outliers: Outliers,
        step: f64,
    ) -> Result<Self, RecordError> {
        let mut nanos = group.nanos.clone();
        let (observations, smallest) = match outliers.kept(launch, &group.key, &mut nanos, step)? {
            Some(found) => {
                let check = SampleSizeCheck {
                    seed: seed_of(check.seed, launch, &group.key),
                    ..check.clone()
                };
                (found.kept.len(), check.smallest(&found.kept))
            }
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

/// Derives the seed of a group of a launch, the same on every machine.
fn seed_of(seed: u64, launch: &str, key: &GroupKey) -> u64 {
    let name = Crc32::of_bytes(launch.as_bytes());
    let group = Crc32::of_bytes(key.to_string().as_bytes());
    seed ^ (u64::from(name) << 32 | u64::from(group))
}

#[cfg(test)]
mod tests {
    use super::super::examples::group;
    use super::*;

    #[test]
    fn launches_are_checked_separately() {
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
            ObservationsNeeded::new("a", &group(8, &nanos), &check, Outliers::Tukey, 0.0).unwrap();
        assert_eq!(found.observations, 490);
        assert_eq!(found.smallest.unwrap().unwrap().size(), 10);
        let all =
            ObservationsNeeded::new("a", &group(8, &nanos), &check, Outliers::Keep, 0.0).unwrap();
        assert_eq!((all.observations, all.smallest), (500, Ok(None)));

        let none =
            ObservationsNeeded::new("a", &group(8, &[]), &check, Outliers::Keep, 0.0).unwrap();
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
        let same = ObservationsNeeded::new("a", &group(8, &[5.0; 9]), &check, Outliers::Keep, 0.0)
            .unwrap();
        assert_eq!(same.smallest, Err(StatsError::NoSpread));
        let infinite = ObservationsNeeded::new(
            "a",
            &group(8, &[f64::INFINITY]),
            &check,
            Outliers::Keep,
            0.0,
        );
        assert!(matches!(infinite, Err(RecordError::InvalidTime { launch, .. }) if launch == "a"));
    }
}
