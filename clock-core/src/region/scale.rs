//! Conversion of clock ticks to program ticks.

use crate::{Duration, ModelError, TickRate};

/// The number of program ticks per clock tick.
///
/// A program chooses the unit of its histograms, its tick: one nanosecond by default. Ticks of clocks are no common unit,
/// because their lengths differ between nodes.
///
/// ```
/// use downbeat_clock_core::region::TickScale;
/// use downbeat_clock_core::{Duration, TickRate};
///
/// let scale = TickScale::new(TickRate::from_hz(2_000_000_000)?, Duration::from_micros(1))?;
/// assert_eq!(scale.apply(2_000_000), 1_000);
/// // Rounds down.
/// assert_eq!(scale.apply(1_999), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TickScale {
    whole: u64,
    /// In units of 2^-64.
    fraction: u64,
}

impl TickScale {
    /// The scale of a clock that counts nanoseconds, for program ticks of one nanosecond.
    pub const NANOSECONDS: Self = Self {
        whole: 1,
        fraction: 0,
    };

    /// The scale of a clock with this rate, for program ticks of length `tick`.
    ///
    /// # Errors
    /// If `tick` is not positive, or longer than 2^64 ticks of the clock.
    pub fn new(rate: TickRate, tick: Duration) -> Result<Self, ModelError> {
        let tick = u128::try_from(tick.as_nanos())
            .ok()
            .filter(|tick| *tick > 0)
            .ok_or(ModelError::TickNotPositive)?;
        // Rounded up, so that an exact multiple of a program tick is not converted to one tick less.
        let fixed = rate.fixed().div_ceil(tick);
        // The quotient is below one unit, and rounding it up to one would be wrong.
        if rate.fixed() < tick {
            return Err(ModelError::TickTooLong);
        }
        Ok(Self {
            whole: (fixed >> 64) as u64,
            fraction: fixed as u64,
        })
    }

    /// Converts ticks of the clock to whole ticks of the program; saturates.
    #[inline(always)]
    pub const fn apply(self, ticks: u64) -> u64 {
        let part = ((ticks as u128 * self.fraction as u128) >> 64) as u64;
        ticks.saturating_mul(self.whole).saturating_add(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use proptest::prelude::*;

    #[test]
    fn invalid_ticks_are_rejected() {
        let scale = |nanos| TickScale::new(TickRate::NANOSECOND, Duration::from_nanos(nanos));
        assert_eq!(scale(0), Err(ModelError::TickNotPositive));
        assert_eq!(scale(-5), Err(ModelError::TickNotPositive));
        assert!(scale(i64::MAX).is_ok());
        let slowest = TickRate::from_ratio(1, 1 << 60).unwrap();
        assert_eq!(
            TickScale::new(slowest, Duration::MAX),
            Err(ModelError::TickTooLong)
        );
    }

    #[test]
    fn slow_clocks_saturate() {
        let scale = TickScale::new(
            TickRate::from_hz(24_000_000).unwrap(),
            Duration::from_nanos(1),
        )
        .unwrap();
        assert_eq!((scale.apply(24), scale.apply(25)), (1_000, 1_041));
        assert_eq!(scale.apply(u64::MAX), u64::MAX);
    }

    proptest! {
        /// The error is at most one tick for a year of counting.
        #[test]
        fn the_result_is_within_a_tick_of_the_exact_quotient(hz in 1_000_000_u64..10_000_000_000, tick in 1_i64..1_000_000_000, seconds in 0_u64..31_536_000) {
            let ticks = seconds * hz;
            let scale = TickScale::new(TickRate::from_hz(hz).unwrap(), Duration::from_nanos(tick)).unwrap();
            let exact = BigRational::new(BigInt::from(ticks) * 1_000_000_000_u64, BigInt::from(hz) * tick);
            let found = BigRational::from_integer(scale.apply(ticks).into());
            prop_assert!(found <= &exact + BigRational::from_integer(1.into()));
            prop_assert!(found + BigRational::from_integer(1.into()) >= exact);
        }
    }
}
