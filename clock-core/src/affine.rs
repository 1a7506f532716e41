//! The integer arithmetic under every clock model: `floor((input * rate + constant) / 2^64)`, exact.

use crate::TickRate;

/// One half, in units of 2^-64 ns: folded into every constant, so that a floor becomes a rounding.
pub(crate) const HALF: i128 = 1 << 63;

/// A constant reaches 2^126 units of 2^-64 ns, 146 years, either way. As long as the product stays below the same
/// bound, the sum needs no check: it fits an `i128`.
const REACH: u128 = 1 << 126;

/// `input * rate + constant`, in units of 2^-64 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Affine {
    pub(crate) rate: TickRate,
    /// Within +-[`REACH`]; holds [`HALF`] too.
    pub(crate) constant: i128,
    /// The largest input whose product is below [`REACH`].
    pub(crate) limit: u64,
}

impl Affine {
    /// `output = input`, for clocks that count nanoseconds.
    pub(crate) const IDENTITY: Self = Self {
        rate: TickRate::NANOSECOND,
        constant: HALF,
        limit: ((REACH - 1) >> 64) as u64,
    };

    /// `None` when the constant is beyond its reach.
    pub(crate) const fn new(rate: TickRate, constant: i128) -> Option<Self> {
        if constant.unsigned_abs() > REACH {
            return None;
        }
        let inputs = (REACH - 1) / rate.fixed();
        let limit = if inputs > u64::MAX as u128 {
            u64::MAX
        } else {
            inputs as u64
        };
        Some(Self {
            rate,
            constant,
            limit,
        })
    }

    /// The image of an unsigned input, in whole nanoseconds; saturates.
    ///
    /// This is the timed path: two multiplications side by side, an addition, and one branch that a running clock
    /// does not take in its first 146 years.
    #[inline(always)]
    pub(crate) fn eval_unsigned(self, input: u64) -> i64 {
        if input > self.limit {
            return eval_far(input, self.rate, self.constant);
        }
        // Only the sum is bound to fit, so the parts wrap. The whole nanoseconds join the constant first: that is done
        // by the time the long multiplication is.
        let whole = i128::from(input.wrapping_mul(self.rate.whole())) << 64;
        let fraction = u128::from(input) * u128::from(self.rate.fraction());
        ((fraction as i128).wrapping_add(self.constant.wrapping_add(whole)) >> 64) as i64
    }

    /// The image of a signed input, in whole nanoseconds; saturates.
    #[inline]
    pub(crate) fn eval_signed(self, input: i64) -> i64 {
        let negative = input < 0;
        // The constant alone never overflows, so an overflow has the sign of the product.
        let end = if negative { i64::MIN } else { i64::MAX };
        exact(input.unsigned_abs(), negative, self.rate, self.constant)
            .map_or(end, |sum| (sum >> 64) as i64)
    }
}

/// The smallest input whose image is at least `wanted`.
///
/// Exact, and so possibly beyond what the input's own type can hold.
pub(crate) fn preimage(wanted: i64, rate: TickRate, constant: i128) -> i128 {
    // input * rate >= wanted * 2^64 - constant. The right side may need 129 bits: sign and magnitude.
    let target = i128::from(wanted) << 64;
    let (distance, negative) = match target.checked_sub(constant) {
        Some(distance) => (distance.unsigned_abs(), distance < 0),
        // They differ in sign, or the difference would have fitted.
        None => (target.unsigned_abs() + constant.unsigned_abs(), target < 0),
    };
    if negative {
        -i128::try_from(distance / rate.fixed()).unwrap_or(i128::MAX)
    } else {
        i128::try_from(distance.div_ceil(rate.fixed())).unwrap_or(i128::MAX)
    }
}

/// Takes the parts one by one: a whole [`Affine`] would be put on the stack before the branch that leads here.
#[cold]
#[inline(never)]
fn eval_far(input: u64, rate: TickRate, constant: i128) -> i64 {
    exact(input, false, rate, constant).map_or(i64::MAX, |sum| (sum >> 64) as i64)
}

/// `input * rate + constant`, not cut to whole nanoseconds; `None` beyond the range of `i128`.
pub(crate) fn exact(input: u64, negative: bool, rate: TickRate, constant: i128) -> Option<i128> {
    let product = u128::from(input).checked_mul(rate.fixed())?;
    if negative {
        add(product, -constant).map(core::ops::Neg::neg)
    } else {
        add(product, constant)
    }
}

/// `a + b`, unless that leaves the range of `i128`.
fn add(a: u128, b: i128) -> Option<i128> {
    match i128::try_from(a) {
        Ok(a) => a.checked_add(b),
        // a >= 2^127: only a negative b brings it back into range, and then it stays positive.
        Err(_) => i128::try_from(a.checked_add_signed(b)?).ok(),
    }
}

/// `a * b / 2^64`, rounded to nearest: the product of two numbers in units of 2^-64. `None` beyond 2^128.
pub(crate) const fn mul_fixed(a: u128, b: u128) -> Option<u128> {
    const LOW: u128 = u64::MAX as u128;
    let (a_high, a_low, b_high, b_low) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let Some(high) = (a_high * b_high).checked_mul(1 << 64) else {
        return None;
    };
    let low = a_low * b_low;
    let low = (low >> 64) + (low >> 63 & 1);
    // Neither cross product leaves room for an overflow of its own.
    let Some(sum) = high.checked_add(a_high * b_low) else {
        return None;
    };
    let Some(sum) = sum.checked_add(a_low * b_high) else {
        return None;
    };
    sum.checked_add(low)
}

/// As [`mul_fixed`], for a signed number; `None` beyond the range of `i128`.
pub(crate) fn scale(value: i128, rate: TickRate) -> Option<i128> {
    let magnitude = i128::try_from(mul_fixed(value.unsigned_abs(), rate.fixed())?).ok()?;
    Some(if value < 0 { -magnitude } else { magnitude })
}
