//! The integer arithmetic under every clock model: `floor((input * rate + constant) / 2^64)`, exact.

use crate::TickRate;
use crate::fixed::{HALF, exact};

/// Upper limit of the magnitude of a constant: 2^126 units of 2^-64 ns, 146 years. As long as the product stays below
/// the same limit, the sum needs no check: it fits an `i128`.
const REACH: u128 = 1 << 126;

/// `input * rate + constant`, in units of 2^-64 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Affine {
    pub(crate) rate: TickRate,
    /// Within +-[`REACH`]; includes [`HALF`].
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

    /// Creates the map; `None` if the constant is beyond [`REACH`].
    pub(crate) const fn new(rate: TickRate, constant: i128) -> Option<Self> {
        if constant.unsigned_abs() > REACH {
            return None;
        }
        let map = Self {
            rate,
            constant,
            limit: 0,
        };
        Some(map.limited())
    }

    /// Sets the limit.
    pub(crate) const fn limited(self) -> Self {
        let inputs = (REACH - 1) / self.rate.fixed();
        let limit = if inputs > u64::MAX as u128 {
            u64::MAX
        } else {
            inputs as u64
        };
        Self { limit, ..self }
    }

    /// Returns the rate and the constant as words, high before low.
    #[cfg(target_has_atomic = "64")]
    pub(crate) const fn to_words(self) -> [u64; 4] {
        [
            self.rate.whole(),
            self.rate.fraction(),
            (self.constant >> 64) as u64,
            self.constant as u64,
        ]
    }

    /// Returns the map of which these are the first words, without its limit.
    #[cfg(target_has_atomic = "64")]
    #[inline(always)]
    pub(crate) fn of_words<const N: usize>(words: [u64; N]) -> Self {
        const { assert!(N >= 4, "four words make a map") };
        Self {
            rate: TickRate::from_valid_parts(words[0], words[1]),
            constant: (u128::from(words[2]) << 64 | u128::from(words[3])) as i128,
            limit: 0,
        }
    }

    /// The image of any unsigned input, in whole nanoseconds; saturates.
    #[cfg(target_has_atomic = "64")]
    pub(crate) fn eval_checked(self, input: u64) -> i64 {
        eval_far(input, self.rate, self.constant)
    }

    /// The image of an unsigned input, in whole nanoseconds; saturates.
    ///
    /// This is the timed path: two independent multiplications, an addition, and one branch that a running clock
    /// does not take in its first 146 years.
    #[inline(always)]
    pub(crate) fn eval_unsigned(self, input: u64) -> i64 {
        if input > self.limit {
            return eval_far(input, self.rate, self.constant);
        }
        self.eval_near(input)
    }

    /// The image of an input up to the limit.
    #[inline(always)]
    pub(crate) fn eval_near(self, input: u64) -> i64 {
        // Only the sum is certain to fit, so the parts wrap. The whole nanoseconds are added to the constant first: this
        // runs in parallel with the long multiplication.
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
        exact(
            input.unsigned_abs(),
            negative,
            self.rate.fixed(),
            self.constant,
        )
        .map_or(end, |sum| (sum >> 64) as i64)
    }
}

/// The slow path of [`Affine::eval_unsigned`]. Takes the fields one by one: an [`Affine`] would be stored on the stack
/// before the branch that leads here.
#[cold]
#[inline(never)]
fn eval_far(input: u64, rate: TickRate, constant: i128) -> i64 {
    exact(input, false, rate.fixed(), constant).map_or(i64::MAX, |sum| (sum >> 64) as i64)
}
