//! Formatting of ticks and seconds.

use downbeat_clock_core::Duration;

/// Length of a tick, for formatting.
pub(super) struct TickFormat {
    nanos: u128,
    /// Number of decimal places of a tick in seconds.
    digits: usize,
}

const DIGITS: usize = 9;

impl TickFormat {
    pub(super) fn new(tick: Duration) -> Self {
        let nanos = u128::from(tick.as_nanos().unsigned_abs());
        let zeros = (1..=6)
            .take_while(|zeros| nanos.is_multiple_of(10_u128.pow(*zeros)))
            .count();
        Self {
            nanos,
            digits: DIGITS - zeros,
        }
    }

    /// Exact time in seconds: `6.262`.
    pub(super) fn seconds(&self, ticks: u128) -> String {
        self.seconds_to(ticks, self.digits)
    }

    /// Time in seconds, rounded down to this number of decimal places, at most nine.
    pub(super) fn seconds_to(&self, ticks: u128, digits: usize) -> String {
        const SECOND: u128 = 10_u128.pow(DIGITS as u32);
        let nanos = ticks.saturating_mul(self.nanos);
        let fraction = format!("{:09}", nanos % SECOND);
        format!("{}.{}", nanos / SECOND, &fraction[..digits.min(DIGITS)])
    }

    /// Time as `6.262 sec (6262 ticks)`.
    pub(super) fn time(&self, ticks: u128) -> String {
        format!("{} sec ({ticks} ticks)", self.seconds(ticks))
    }

    /// Number of decimal places for a column with this maximum: two as in the paper, and more until
    /// three significant digits are shown or ticks are exact.
    pub(super) fn digits_for(&self, ticks: u128) -> usize {
        let mut nanos = ticks.saturating_mul(self.nanos).max(1);
        let mut digits = 2;
        while nanos < 1_000_000_000 && digits < self.digits {
            nanos *= 10;
            digits += 1;
        }
        digits
    }
}

/// Formats picoseconds as nanoseconds: `9.2 ns`.
pub(super) fn nanos(picos: u64) -> String {
    format!("{}.{} ns", picos / 1_000, picos % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_as_many_digits_as_a_tick() {
        let time = |nanos, ticks| TickFormat::new(Duration::from_nanos(nanos)).time(ticks);
        assert_eq!(time(1_000_000, 6_262), "6.262 sec (6262 ticks)");
        assert_eq!(time(1, 6_262), "0.000006262 sec (6262 ticks)");
        assert_eq!(time(1_000_000_000, 3), "3.000 sec (3 ticks)");
        assert_eq!(time(2_500, 3), "0.0000075 sec (3 ticks)");
        assert!(time(1, u128::MAX).starts_with("340282366920938463463374607431.768211455 sec"));
    }

    #[test]
    fn columns_have_two_digits_or_as_many_as_show_something() {
        let digits = |nanos, ticks| TickFormat::new(Duration::from_nanos(nanos)).digits_for(ticks);
        assert_eq!(
            [
                digits(1_000_000, 841_110),
                digits(1_000_000, 12),
                digits(1, 12_000_000),
                digits(1, 0)
            ],
            [2, 3, 4, 9]
        );
    }
}
