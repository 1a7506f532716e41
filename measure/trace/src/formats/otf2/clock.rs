//! Conversion between ticks of an archive's clock and nanoseconds.

/// Resolution of an archive's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otf2Clock {
    per_second: i128,
}

const NANOS: i128 = 1_000_000_000;

impl Otf2Clock {
    /// Creates the clock; `None` if the resolution is 0.
    pub(super) fn new(per_second: u64) -> Option<Self> {
        (per_second > 0).then(|| Self {
            per_second: i128::from(per_second),
        })
    }

    /// Converts ticks to nanoseconds, rounded to the nearest, ties upwards; `None` on overflow.
    #[inline]
    pub(super) fn nanos(self, ticks: i64) -> Option<i64> {
        if self.per_second == NANOS {
            return Some(ticks);
        }
        i64::try_from(
            (2 * NANOS * i128::from(ticks) + self.per_second).div_euclid(2 * self.per_second),
        )
        .ok()
    }

    /// Returns the first and the last tick within these times in nanoseconds, or twice the nearest
    /// tick if there is none.
    pub(super) fn between(self, earliest: i64, latest: i64) -> Option<[i64; 2]> {
        if self.per_second == NANOS {
            return Some([earliest, latest]);
        }
        // The first tick that is rounded to `nanos` or more is half a nanosecond before it.
        let first =
            |nanos: i64| -(-self.per_second * (2 * i128::from(nanos) - 1)).div_euclid(2 * NANOS);
        let [first, last] = [first(earliest), first(latest.checked_add(1)?) - 1];
        let [first, last] = if first <= last {
            [first, last]
        } else {
            [self.nearest(earliest, latest); 2]
        };
        Some([i64::try_from(first).ok()?, i64::try_from(last).ok()?])
    }

    fn nearest(self, earliest: i64, latest: i64) -> i128 {
        let middle = i128::from(earliest) + i128::from(latest);
        (self.per_second * middle + NANOS).div_euclid(2 * NANOS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        for per_second in [1, 1_000, 1_000_000, 999_999_937, 2_693_000_000] {
            assert_eq!(
                Otf2Clock::new(per_second)
                    .unwrap()
                    .nanos(3 * per_second as i64),
                Some(3_000_000_000)
            );
        }
        assert_eq!(Otf2Clock::new(1).unwrap().nanos(i64::MAX), None);
        assert_eq!(Otf2Clock::new(0), None);
    }

    proptest! {
        #[test]
        fn ticks_between_are_all_that_round_into_the_range(
            per_second in prop_oneof![1_000_000_000_u64..8_000_000_000, 100_000_000_u64..1_000_000_000],
            earliest in -1_000_000_000_000_i64..1_000_000_000_000,
            more in 0..3_i64,
        ) {
            let ticks = Otf2Clock::new(per_second).unwrap();
            let latest = earliest + more;
            let [first, last] = ticks.between(earliest, latest).unwrap();
            let is_in = |tick: i64| (earliest..=latest).contains(&ticks.nanos(tick).unwrap());
            if (first..=last).any(is_in) {
                prop_assert!((first..=last).all(is_in) && !is_in(first - 1) && !is_in(last + 1));
            } else {
                prop_assert!(first == last && !is_in(first - 1) && !is_in(first + 1));
                let error = ticks.nanos(first).unwrap() as f64 - (earliest + latest) as f64 / 2.0;
                prop_assert!(error.abs() <= 0.5e9 / per_second as f64 + 1.0);
            }
        }
    }
}
