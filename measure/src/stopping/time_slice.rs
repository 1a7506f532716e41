//! Number of observations that fit into the rest of a time slice.

use downbeat_clock_core::Duration;

/// Returns about half of the number that fits, by the average duration so far: the slice is exceeded by little even if
/// the next observations take twice as long, and there are only a few batches. The number is at least 1, and at most that
/// of the observations so far, as the first ones are often untypical; 0 when the time is over.
pub(super) fn next(slice: Duration, elapsed: Duration, observations: u32) -> u32 {
    let remaining = (slice - elapsed).as_nanos();
    if remaining <= 0 {
        return 0;
    }
    let each = elapsed.as_nanos().max(0) / i64::from(observations.max(1));
    let fit = (remaining / 2).checked_div(each).unwrap_or(i64::MAX);
    u32::try_from(fit)
        .unwrap_or(u32::MAX)
        .clamp(1, observations.clamp(FIRST, LONGEST))
}

/// Size of the first batch.
const FIRST: u32 = 8;

/// Size of the longest batch, which each rank stores as a whole.
const LONGEST: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_rest_is_planned_but_at_most_doubling() {
        let next_in_1_us = |elapsed, observations| {
            next(
                Duration::from_nanos(1_000),
                Duration::from_nanos(elapsed),
                observations,
            )
        };
        assert_eq!(next_in_1_us(0, 0), FIRST);
        assert_eq!(next_in_1_us(-5, 0), FIRST);
        // 0 ns each.
        assert_eq!((next_in_1_us(0, 100), next_in_1_us(99, 100)), (100, 100));
        // 5 ns each: 180 would fit. Then 100 of 5 ns, then 10 of 50, and one of 500.
        assert_eq!(
            (
                next_in_1_us(100, 20),
                next_in_1_us(500, 100),
                next_in_1_us(500, 10),
                next_in_1_us(500, 1)
            ),
            (20, 50, 5, 1)
        );
        assert_eq!(
            (
                next_in_1_us(999, 10),
                next_in_1_us(1_000, 10),
                next_in_1_us(2_000, 0)
            ),
            (1, 0, 0)
        );
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let longest = Duration::from_nanos(i64::MAX);
        assert_eq!(next(longest, longest, 5), 0);
        assert_eq!(next(longest, Duration::from_nanos(i64::MIN), 5), 8);
        assert_eq!(next(longest, Duration::from_nanos(i64::MAX - 1), 1), 1);
        assert_eq!(next(longest, Duration::ZERO, u32::MAX), LONGEST);
    }
}
