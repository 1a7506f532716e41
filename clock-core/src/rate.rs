//! The rate of a counter: nanoseconds per tick.

use crate::fixed::{self, HALF};
use crate::{Duration, ModelError};

/// Nanoseconds per tick, in units of 2^-64 ns.
///
/// After a year of counting at 1 to 10 GHz the error from rounding to that unit is less than a hundredth of a
/// nanosecond.
///
/// ```
/// use downbeat_clock_core::{Duration, TickRate};
///
/// let rate = TickRate::from_hz(2_600_000_000)?;
/// assert_eq!(rate.duration(2_600), Duration::from_micros(1));
/// // One tick less is 999.6 ns, which also rounds to 1 us.
/// assert_eq!(rate.ticks(Duration::from_micros(1)), 2_599);
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TickRate {
    /// At least 1 and below 2^96.
    fixed: u128,
}

impl TickRate {
    /// One nanosecond per tick: the rate of every clock that counts nanoseconds.
    pub const NANOSECOND: Self = Self { fixed: 1 << 64 };

    /// The rate of a counter that counted `ticks` in `nanos` nanoseconds.
    ///
    /// # Errors
    /// If either is zero, or the rate is out of range.
    pub const fn from_ratio(nanos: u64, ticks: u64) -> Result<Self, ModelError> {
        if nanos == 0 || ticks == 0 {
            return Err(ModelError::RateNotPositive);
        }
        let (nanos, ticks) = ((nanos as u128) << 64, ticks as u128);
        let round_up = nanos % ticks >= ticks.div_ceil(2);
        Self::from_fixed(nanos / ticks + round_up as u128)
    }

    /// The rate of a counter with this frequency.
    ///
    /// # Errors
    /// If the frequency is zero.
    pub const fn from_hz(hz: u64) -> Result<Self, ModelError> {
        Self::from_ratio(1_000_000_000, hz)
    }

    /// The rate changed by `drift`: `rate * (1 + drift)`, where `1e-6` is one part per million.
    ///
    /// # Errors
    /// If `drift` is not a number or is -1 or less, or the result is out of range.
    pub fn with_drift(self, drift: f64) -> Result<Self, ModelError> {
        if drift.is_nan() {
            return Err(ModelError::RateNotANumber);
        }
        if drift <= -1.0 {
            return Err(ModelError::RateNotPositive);
        }
        // 1 + drift is computed in integers: as an f64 it would lose all digits below 1e-16. The cast saturates.
        let factor = Self::NANOSECOND
            .fixed
            .saturating_add_signed(libm::round(drift * UNITS) as i128);
        self.times(Self::from_fixed(factor)?)
    }

    /// The product of two rates: the rate of two composed clocks.
    ///
    /// # Errors
    /// If the product is out of range.
    pub const fn times(self, other: Self) -> Result<Self, ModelError> {
        match fixed::mul_fixed(self.fixed, other.fixed) {
            Some(product) => Self::from_fixed(product),
            None => Err(ModelError::RateOutOfRange),
        }
    }

    /// The rate from units of 2^-64 ns per tick.
    pub(crate) const fn from_fixed(fixed: u128) -> Result<Self, ModelError> {
        if fixed == 0 || fixed >> 96 != 0 {
            return Err(ModelError::RateOutOfRange);
        }
        Ok(Self { fixed })
    }

    /// The rate in units of 2^-64 ns per tick.
    #[inline(always)]
    pub(crate) const fn fixed(self) -> u128 {
        self.fixed
    }

    /// Whole nanoseconds per tick: 0 for every counter above 1 GHz.
    #[inline(always)]
    pub(crate) const fn whole(self) -> u64 {
        (self.fixed >> 64) as u64
    }

    /// The fraction of a nanosecond per tick, in units of 2^-64 ns.
    #[inline(always)]
    pub(crate) const fn fraction(self) -> u64 {
        self.fixed as u64
    }

    /// The rate from its whole and fractional parts.
    #[cfg(target_has_atomic = "64")]
    #[inline(always)]
    pub(crate) const fn from_valid_parts(whole: u64, fraction: u64) -> Self {
        Self {
            fixed: (whole as u128) << 64 | fraction as u128,
        }
    }

    /// The length of a number of ticks, to the nearest nanosecond; saturates.
    #[inline]
    pub fn duration(self, ticks: u64) -> Duration {
        let nanos =
            fixed::exact(ticks, false, self.fixed, HALF).map_or(i64::MAX, |sum| (sum >> 64) as i64);
        Duration::from_nanos(nanos)
    }

    /// The smallest number of ticks with a [`duration`](Self::duration) of at least `span`; 0 for a negative span, saturates.
    pub fn ticks(self, span: Duration) -> u64 {
        u64::try_from(fixed::preimage(span.as_nanos(), self.fixed, HALF).max(0)).unwrap_or(u64::MAX)
    }

    /// The frequency of the counter.
    pub fn hz(self) -> f64 {
        1e9 / self.nanos_per_tick()
    }

    /// The rate as a floating-point number, for printing.
    pub fn nanos_per_tick(self) -> f64 {
        self.fixed as f64 / UNITS
    }

    /// The relative difference from another rate: `self / other - 1`, so `1e-6` is one part per million.
    pub fn drift_from(self, other: Self) -> f64 {
        // The difference is computed in integers, so that 1 + 1e-18 and 1 differ.
        (self.fixed as i128 - other.fixed as i128) as f64 / other.fixed as f64
    }
}

/// Units of a rate in one nanosecond per tick.
const UNITS: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::Signed;
    use proptest::prelude::*;

    fn exact(rate: TickRate) -> BigRational {
        BigRational::new(rate.fixed.into(), BigInt::from(1) << 64)
    }

    fn half_a_unit() -> BigRational {
        BigRational::new(1.into(), BigInt::from(1) << 65)
    }

    #[test]
    fn one_nanosecond_is_one_nanosecond() {
        assert_eq!(TickRate::from_hz(1_000_000_000), Ok(TickRate::NANOSECOND));
        assert_eq!(
            TickRate::NANOSECOND.duration(12_345),
            Duration::from_nanos(12_345)
        );
        assert_eq!(
            TickRate::NANOSECOND.times(TickRate::NANOSECOND),
            Ok(TickRate::NANOSECOND)
        );
        assert_eq!(
            TickRate::NANOSECOND.with_drift(0.0),
            Ok(TickRate::NANOSECOND)
        );
    }

    #[test]
    fn rates_of_slow_counters_are_exact() {
        let generic_timer = TickRate::from_hz(24_000_000).unwrap();
        assert_eq!(generic_timer.duration(24), Duration::from_micros(1));
        assert_eq!(
            TickRate::from_hz(1).unwrap().duration(86_400),
            Duration::from_secs(86_400)
        );
    }

    #[test]
    fn invalid_rates_are_rejected() {
        assert_eq!(TickRate::from_hz(0), Err(ModelError::RateNotPositive));
        assert_eq!(TickRate::from_ratio(0, 1), Err(ModelError::RateNotPositive));
        assert_eq!(
            TickRate::from_ratio(1 << 32, 1),
            Err(ModelError::RateOutOfRange)
        );
        assert_eq!(
            TickRate::from_ratio(u64::MAX, 1),
            Err(ModelError::RateOutOfRange)
        );
        assert_eq!(
            TickRate::NANOSECOND.with_drift(f64::NAN),
            Err(ModelError::RateNotANumber)
        );
        assert_eq!(
            TickRate::NANOSECOND.with_drift(-1.0),
            Err(ModelError::RateNotPositive)
        );
        assert_eq!(
            TickRate::NANOSECOND.with_drift(f64::INFINITY),
            Err(ModelError::RateOutOfRange)
        );
        let slowest = TickRate::from_ratio((1 << 32) - 1, 1).unwrap();
        assert_eq!(slowest.times(slowest), Err(ModelError::RateOutOfRange));
    }

    #[test]
    fn spans_saturate() {
        assert_eq!(
            TickRate::from_hz(1).unwrap().duration(u64::MAX),
            Duration::MAX
        );
        assert_eq!(
            TickRate::from_hz(10_000_000_000)
                .unwrap()
                .ticks(Duration::MAX),
            u64::MAX
        );
        assert_eq!(TickRate::NANOSECOND.ticks(Duration::MIN), 0);
    }

    #[test]
    fn a_drift_below_the_precision_of_an_f64_near_one_is_kept() {
        let drifted = TickRate::NANOSECOND.with_drift(1e-18).unwrap();
        let drift = drifted.drift_from(TickRate::NANOSECOND);
        assert!((drift - 1e-18).abs() < 1e-19, "{drift}");
    }

    proptest! {
        #[test]
        fn a_ratio_is_rounded_to_nearest(nanos in 1_u64.., ticks in 1_u64..) {
            prop_assume!(nanos >> 32 < ticks && ticks >> 60 < nanos);
            let rate = TickRate::from_ratio(nanos, ticks).unwrap();
            prop_assert!((exact(rate) - BigRational::new(nanos.into(), ticks.into())).abs() <= half_a_unit());
        }

        #[test]
        fn a_product_is_rounded_to_nearest(a in 1_u64.., b in 1_u64.., c in 1_u64.., d in 1_u64..) {
            let pair = TickRate::from_ratio(a, b).and_then(|x| Ok((x, TickRate::from_ratio(c, d)?)));
            let Ok((x, y)) = pair else { return Ok(()) };
            let Ok(product) = x.times(y) else { return Ok(()) };
            prop_assert!((exact(product) - exact(x) * exact(y)).abs() <= half_a_unit());
        }

        #[test]
        fn drift_multiplies(hz in 1_000_000_u64..10_000_000_000, ppm in -500.0_f64..500.0) {
            let rate = TickRate::from_hz(hz).unwrap();
            let drifted = rate.with_drift(ppm * 1e-6).unwrap();
            prop_assert!((drifted.drift_from(rate) - ppm * 1e-6).abs() < 1e-17);
        }

        #[test]
        fn ticks_are_the_smallest_number_that_lasts_as_long(hz in 1_000_u64..10_000_000_000, nanos in 1_i64..1 << 60) {
            let rate = TickRate::from_hz(hz).unwrap();
            let span = Duration::from_nanos(nanos);
            let ticks = rate.ticks(span);
            prop_assert!(rate.duration(ticks) >= span);
            prop_assert!(ticks == 0 || rate.duration(ticks - 1) < span);
        }
    }
}
