//! Checked arithmetic on fixed-point numbers in units of 2^-64.

/// One half, in units of 2^-64 ns: added to every constant, so that a floor becomes a rounding.
pub(crate) const HALF: i128 = 1 << 63;

/// `input * rate + constant`, not rounded to whole nanoseconds; `None` beyond the range of `i128`.
pub(crate) fn exact(input: u64, negative: bool, rate: u128, constant: i128) -> Option<i128> {
    let product = u128::from(input).checked_mul(rate)?;
    if negative {
        add(product, -constant).map(core::ops::Neg::neg)
    } else {
        add(product, constant)
    }
}

/// `a + b`; `None` outside the range of `i128`.
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
    // The cross products themselves cannot overflow.
    let Some(sum) = high.checked_add(a_high * b_low) else {
        return None;
    };
    let Some(sum) = sum.checked_add(a_low * b_high) else {
        return None;
    };
    sum.checked_add(low)
}

/// The same as [`mul_fixed`] for a signed number; `None` beyond the range of `i128`.
pub(crate) fn scale(value: i128, rate: u128) -> Option<i128> {
    let magnitude = i128::try_from(mul_fixed(value.unsigned_abs(), rate)?).ok()?;
    Some(if value < 0 { -magnitude } else { magnitude })
}
/// The smallest input whose image is at least `wanted`.
///
/// Exact, so it can lie outside the range of the input's type.
pub(crate) fn preimage(wanted: i64, rate: u128, constant: i128) -> i128 {
    // input * rate >= wanted * 2^64 - constant. The right side may need 129 bits: sign and magnitude.
    let target = i128::from(wanted) << 64;
    let (distance, negative) = match target.checked_sub(constant) {
        Some(distance) => (distance.unsigned_abs(), distance < 0),
        // They differ in sign, otherwise the difference would fit.
        None => (target.unsigned_abs() + constant.unsigned_abs(), target < 0),
    };
    if negative {
        -i128::try_from(distance / rate).unwrap_or(i128::MAX)
    } else {
        i128::try_from(distance.div_ceil(rate)).unwrap_or(i128::MAX)
    }
}
