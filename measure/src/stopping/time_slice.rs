//! How many observations fit into what is left of a time slice.

use downbeat_clock_core::Duration;

/// About half of what fits, judged by those that were made: so a slice is overrun by little even if the next ones take
/// twice as long, and there are but a few batches. At most as many as were made, since the first ones are often slow or
/// quick by chance; at least one. None when the time is over.
pub(super) fn next(slice: Duration, elapsed: Duration, observations: u32) -> u32 {
    let left = (slice - elapsed).as_nanos();
    if left <= 0 {
        return 0;
    }
    let each = elapsed.as_nanos().max(0) / i64::from(observations.max(1));
    let fit = (left / 2).checked_div(each).unwrap_or(i64::MAX);
    u32::try_from(fit)
        .unwrap_or(u32::MAX)
        .clamp(1, observations.max(FIRST))
}

/// How many are made before anything is known.
const FIRST: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_fits_but_no_more_than_were_made() {
        let of_1_us = |elapsed, observations| {
            next(
                Duration::from_nanos(1_000),
                Duration::from_nanos(elapsed),
                observations,
            )
        };
        assert_eq!(of_1_us(0, 0), FIRST);
        assert_eq!(of_1_us(-5, 0), FIRST);
        // 0 ns each.
        assert_eq!((of_1_us(0, 100), of_1_us(99, 100)), (100, 100));
        // 5 ns each: 180 would fit. Then 100 of 5 ns, then 10 of 50, and one of 500.
        assert_eq!(
            (
                of_1_us(100, 20),
                of_1_us(500, 100),
                of_1_us(500, 10),
                of_1_us(500, 1)
            ),
            (20, 50, 5, 1)
        );
        assert_eq!(
            (of_1_us(999, 10), of_1_us(1_000, 10), of_1_us(2_000, 0)),
            (1, 0, 0)
        );
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let longest = Duration::from_nanos(i64::MAX);
        assert_eq!(next(longest, longest, 5), 0);
        assert_eq!(next(longest, Duration::from_nanos(i64::MIN), 5), 8);
        assert_eq!(next(longest, Duration::from_nanos(i64::MAX - 1), 1), 1);
        assert_eq!(next(longest, Duration::ZERO, u32::MAX), u32::MAX);
    }
}
