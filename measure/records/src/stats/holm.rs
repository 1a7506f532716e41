//! Holm's adjustment of p values for several tests.

/// Adjusts p values so that, at a level of 5 %, the probability of any wrong rejection among *all*
/// of them is at most 5 %.
///
/// The result has the order of the input and equals R's `p.adjust(p, "holm")`; no value decreases.
/// A p that is not a number becomes 1: no evidence.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let evidence = |place: usize| if p[place].is_nan() { 1.0 } else { p[place] };
    let mut by_size: Vec<usize> = (0..p.len()).collect();
    by_size.sort_by(|one, other| evidence(*one).total_cmp(&evidence(*other)));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (done, place) in by_size.into_iter().enumerate() {
        largest = largest
            .max((p.len() - done) as f64 * evidence(place))
            .min(1.0);
        adjusted[place] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn adjusted_values_are_those_of_r() {
        for [p, expected] in golden::HOLM {
            let found = holm(p);
            assert_eq!(found.len(), expected.len());
            let close = found
                .iter()
                .zip(*expected)
                .all(|(found, expected)| (found - expected).abs() < 1e-15);
            assert!(close, "{found:?} is not {expected:?}");
        }
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn nan_becomes_one_and_still_counts() {
        assert_eq!(holm(&[f64::NAN, 0.01, -f64::NAN]), [1.0, 0.03, 1.0]);
    }

    proptest! {
        /// By definition: the largest of `(m - i + 1) p(i)` over all p values that are not larger,
        /// but at most 1.
        #[test]
        fn each_is_the_largest_step_up_to_it(mut p in prop::collection::vec(0.0..1.0, 1..30)) {
            let found = holm(&p);
            let expected = p.iter().map(|own| {
                let steps = p.iter().filter(|other| *other <= own).map(|other| {
                    let before = p.iter().filter(|earlier| *earlier < other).count();
                    (p.len() - before) as f64 * other
                });
                steps.fold(0.0, f64::max).min(1.0)
            });
            prop_assert_eq!(&found, &expected.collect::<Vec<_>>());
            p.reverse();
            prop_assert!(holm(&p).iter().eq(found.iter().rev()));
        }
    }
}
