//! From ticks of a clock to ticks of a program.

use crate::{Duration, ModelError, TickRate};

/// How many of a program's ticks one tick of a clock is.
///
/// A program declares what it calls a tick, one nanosecond if nothing else is said. Ticks of clocks are no such unit:
/// those of two nodes are of different length.
///
/// ```
/// use downbeat_clock_core::{Duration, TickRate, TickScale};
///
/// let scale = TickScale::new(TickRate::from_hz(2_000_000_000)?, Duration::from_micros(1))?;
/// assert_eq!(scale.apply(2_000_000), 1_000);
/// // What has begun does not count.
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
    /// For a clock that counts nanoseconds, in a program that does so, too.
    pub const NANOSECONDS: Self = Self {
        whole: 1,
        fraction: 0,
    };

    /// For a clock of this rate, and a program whose ticks are so long.
    ///
    /// # Errors
    /// When `tick` is not positive, or far too long.
    pub fn new(rate: TickRate, tick: Duration) -> Result<Self, ModelError> {
        let tick = u128::try_from(tick.as_nanos())
            .ok()
            .filter(|tick| *tick > 0)
            .ok_or(ModelError::TickNotPositive)?;
        // Rounded up, so that as many ticks of the clock as are one of the program's are not one less.
        let fixed = rate.fixed().div_ceil(tick);
        // One unit would be 2^64 ticks; a rate of one unit is below what any clock has, but it was rounded.
        if rate.fixed() < tick {
            return Err(ModelError::TickTooLong);
        }
        Ok(Self {
            whole: (fixed >> 64) as u64,
            fraction: fixed as u64,
        })
    }

    /// So many ticks of the clock in whole ticks of the program; saturates.
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
    fn what_is_no_tick_is_refused() {
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
        /// Within a tick of the exact quotient, for a year of counting.
        #[test]
        fn the_floor_of_the_exact_quotient(hz in 1_000_000_u64..10_000_000_000, tick in 1_i64..1_000_000_000, seconds in 0_u64..31_536_000) {
            let ticks = seconds * hz;
            let scale = TickScale::new(TickRate::from_hz(hz).unwrap(), Duration::from_nanos(tick)).unwrap();
            let exact = BigRational::new(BigInt::from(ticks) * 1_000_000_000_u64, BigInt::from(hz) * tick);
            let found = BigRational::from_integer(scale.apply(ticks).into());
            prop_assert!(found <= &exact + BigRational::from_integer(1.into()));
            prop_assert!(found + BigRational::from_integer(1.into()) >= exact);
        }
    }
}
