//! Number of launches that an experiment needs.

use super::chi_squared::chi_squared_below;
use super::normal::normal_quantile;
use super::{Confidence, Sample};

/// Fewer launches say nearly nothing about the variance: of five, the upper limit is more than eight times the estimate.
const LEAST: usize = 6;

impl Sample<'_> {
    /// Upper limit of the number of launches until the interval of the mean of their averages reaches `share` of it in either
    /// direction, from the averages of the launches so far, which are taken to be normal.
    ///
    /// The limit is too low with the probability of one tail of the confidence: it takes the largest variance that so few
    /// launches leave possible. `None` for fewer than six launches, if the mean is zero, or if 2^32 launches are not enough.
    pub fn launches_needed(&self, share: f64, confidence: Confidence) -> Option<u64> {
        if self.len() < LEAST {
            return None;
        }
        let freedom = u32::try_from(self.len() - 1).ok()?;
        let underestimated = f64::from(freedom) / chi_squared_below(confidence.tail(), freedom);
        let deviation = (self.variance()? * underestimated).sqrt();
        launches_for(deviation, share * self.mean().abs(), confidence)
    }
}

/// Number of launches whose averages have this standard deviation, until the interval of their mean reaches `reach` in either
/// direction; at least two. `None` if `reach` is not positive, or 2^32 launches are not enough.
pub(super) fn launches_for(deviation: f64, reach: f64, confidence: Confidence) -> Option<u64> {
    if reach.is_nan() || reach <= 0.0 {
        return None;
    }
    // Student's distribution needs a few more than the normal one, which has a formula.
    let normal = (normal_quantile(confidence.tail()) * deviation / reach).powi(2);
    if normal.is_nan() || normal > f64::from(u32::MAX) {
        return None;
    }
    let first = (normal as u64).max(2);
    let enough = |launches: &u64| {
        let launches = *launches as f64;
        confidence.critical_t(launches - 1.0) * deviation <= reach * launches.sqrt()
    };
    (first..=1 << 32).find(enough)
}

#[cfg(test)]
mod tests {
    use super::super::student::student_beyond;
    use super::*;
    use proptest::prelude::*;

    fn needed(values: &[f64], share: f64) -> Option<u64> {
        let mut values = values.to_vec();
        Sample::new(&mut values)
            .unwrap()
            .launches_needed(share, Confidence::USUAL)
    }

    /// The standard deviation of these six is 1, and at most 2.4526 with 97.5 %: `sqrt(5 / qchisq(0.025, 5))`.
    #[test]
    fn the_limit_takes_the_largest_variance_that_is_possible() {
        let spread = (5.0_f64 / 6.0).sqrt();
        let values: Vec<f64> = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]
            .map(|sign| 100.0 + spread * sign)
            .to_vec();
        // 1.96 * 2.4526 = 4.81 per cent of the mean, squared: 23.1, and two more by Student's distribution.
        assert_eq!(needed(&values, 0.01), Some(26));
        assert_eq!(launches_for(1.0, 1.0, Confidence::USUAL), Some(7));
        assert_eq!(needed(&[100.0; 6], 0.01), Some(2));
    }

    #[test]
    fn five_launches_are_too_few() {
        assert_eq!(needed(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.01), None);
        assert_eq!(needed(&[0.0; 6], 0.01), None);
        assert_eq!(needed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], f64::NAN), None);
    }

    proptest! {
        #[test]
        fn one_launch_less_is_not_enough(deviation in 0.01..100.0, reach in 0.5..20.0) {
            let needed = launches_for(deviation, reach, Confidence::USUAL).unwrap();
            let reached = |launches: u64| {
                student_beyond(0.025, (launches - 1) as f64) * deviation / (launches as f64).sqrt()
            };
            prop_assert!(reached(needed) <= reach * (1.0 + 1e-12));
            prop_assert!(needed == 2 || reached(needed - 1) > reach * (1.0 - 1e-12));
        }
    }
}
