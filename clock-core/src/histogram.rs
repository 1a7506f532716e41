//! Histogram bins of one significant decimal digit.

use core::fmt;

/// One bin of a decimal histogram: the numbers with the same number of digits and the same first digit.
///
/// There is one bin for each of 0 to 9, then nine for every power of ten: 10-19, ..., 90-99, 100-199, ..., up to the bin
/// of the largest `u64`. These are the bins of White 2007.
///
/// ```
/// use downbeat_clock_core::histogram::DecimalBin;
///
/// let bin = DecimalBin::containing(6_262);
/// assert_eq!((bin.low(), bin.high()), (6_000, 6_999));
/// assert_eq!(bin.to_string(), "6000-6999");
/// assert_eq!(DecimalBin::containing(7).to_string(), "7");
/// assert!(DecimalBin::containing(7) < bin);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecimalBin(u8);

/// Constants to divide by a power of ten without a division instruction.
#[derive(Clone, Copy)]
struct Decade {
    /// `10^d`.
    power: u64,
    /// `2^(64 + shift) / 10^d`, rounded up; 0 for `d = 0`, where it would not fit a `u64`.
    inverse: u64,
    /// All bits set for `d = 0`, where the number itself is the digit; otherwise 0.
    itself: u64,
    shift: u32,
}

/// Number of powers of ten in a `u64`.
const DECADES: usize = 20;

const DECADE_TABLE: [Decade; DECADES] = {
    let mut table = [Decade {
        power: 1,
        inverse: 0,
        itself: u64::MAX,
        shift: 0,
    }; DECADES];
    let mut d = 1;
    let mut power: u64 = 10;
    while d < DECADES {
        let shift = power.ilog2();
        let inverse = (1_u128 << (64 + shift)).div_ceil(power as u128) as u64;
        table[d] = Decade {
            power,
            inverse,
            itself: 0,
            shift,
        };
        power = power.wrapping_mul(10);
        d += 1;
    }
    table
};

/// Exponent of the largest power of ten not above the largest number with this number of leading zeros.
const REACHED: [u8; 64] = {
    let mut reached = [0; 64];
    let mut zeros = 0;
    while zeros < reached.len() {
        reached[zeros] = (u64::MAX >> zeros).ilog10() as u8;
        zeros += 1;
    }
    reached
};

impl DecimalBin {
    /// Number of bins.
    pub const COUNT: usize = 9 * (DECADES - 1) + 2;

    /// The bin that contains `value`.
    ///
    /// Has no division, loop or branch, because timers call it at every event.
    #[inline(always)]
    pub const fn containing(value: u64) -> Self {
        // 0 has as many digits as 1, and setting the lowest bit makes no number a digit longer.
        let significant = value | 1;
        let reached = REACHED[(significant.leading_zeros() & 63) as usize];
        let decade = reached - (significant < DECADE_TABLE[reached as usize].power) as u8;
        let Decade {
            inverse,
            itself,
            shift,
            ..
        } = DECADE_TABLE[decade as usize];
        // Exact, as the digit is at most 9: the inverse is too large by less than 2^-63 of itself.
        let product = ((value as u128 * inverse as u128) >> 64) as u64;
        let digit = (product | (value & itself)) >> shift;
        Self(decade * 9 + digit as u8)
    }

    /// The bin with this index, in ascending order from 0; `None` if the index is out of range.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Index of the bin, from 0 for the bin of the number 0.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The smallest number in the bin.
    pub const fn low(self) -> u64 {
        let (decade, digit) = self.parts();
        digit * DECADE_TABLE[decade].power
    }

    /// The largest number in the bin.
    pub const fn high(self) -> u64 {
        let (decade, _) = self.parts();
        self.low().saturating_add(DECADE_TABLE[decade].power - 1)
    }

    /// The exponent of the power of ten, and the first digit.
    const fn parts(self) -> (usize, u64) {
        let index = self.0 as usize;
        if index < 10 {
            (0, index as u64)
        } else {
            ((index - 1) / 9, (index - 1) as u64 % 9 + 1)
        }
    }
}

/// Prints the range of the bin: `7`, `6000-6999`.
impl fmt::Display for DecimalBin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low(), self.high()) {
            (low, high) if low == high => write!(f, "{low}"),
            (low, high) => write!(f, "{low}-{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// The definition of the paper: a search for the power of ten, and a division.
    fn by_division(value: u64) -> (u64, u64) {
        let mut power = 1;
        while value / power >= 10 {
            power *= 10;
        }
        let low = value / power * power;
        (low, low.saturating_add(power - 1))
    }

    #[test]
    fn bins_cover_all_numbers_without_gaps() {
        let mut next = Some(0);
        for index in 0..DecimalBin::COUNT {
            let bin = DecimalBin::from_index(index).unwrap();
            assert_eq!((Some(bin.low()), bin.index()), (next, index));
            for value in [
                bin.low(),
                bin.low() + (bin.high() - bin.low()) / 2,
                bin.high(),
            ] {
                assert_eq!(DecimalBin::containing(value), bin, "{value}");
                assert_eq!((bin.low(), bin.high()), by_division(value));
            }
            next = bin.high().checked_add(1);
        }
        assert_eq!(next, None, "the last bin ends with u64::MAX");
        assert_eq!(DecimalBin::from_index(DecimalBin::COUNT), None);
    }

    #[test]
    fn the_bins_of_the_paper() {
        let shown = |value| DecimalBin::containing(value).to_string();
        assert_eq!(
            [0, 9, 10, 19, 99, 100, 6_262].map(shown),
            ["0", "9", "10-19", "10-19", "90-99", "100-199", "6000-6999"]
        );
        assert_eq!(shown(u64::MAX), "10000000000000000000-18446744073709551615");
    }

    proptest! {
        #[test]
        fn any_number_is_in_the_bin_found_by_division(value: u64, zeros in 0_u32..64) {
            let value = value >> zeros;
            let bin = DecimalBin::containing(value);
            prop_assert_eq!((bin.low(), bin.high()), by_division(value));
        }
    }
}
