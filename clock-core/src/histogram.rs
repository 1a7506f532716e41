//! Histograms that are as fine everywhere as a decimal digit.

use core::fmt;

/// One bin of a decimal histogram: which numbers share their length and their first digit.
///
/// There is one for each of 0 to 9, then nine for every power of ten: 10-19, ..., 90-99, 100-199, ..., up to the one that
/// holds the largest `u64`. These are the bins of the 2007 paper on multi-resolution timers.
///
/// ```
/// use downbeat_clock_core::DecimalBin;
///
/// let bin = DecimalBin::containing(6_262);
/// assert_eq!((bin.low(), bin.high()), (6_000, 6_999));
/// assert_eq!(bin.to_string(), "6000-6999");
/// assert_eq!(DecimalBin::containing(7).to_string(), "7");
/// assert!(DecimalBin::containing(7) < bin);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecimalBin(u8);

/// How to divide by a power of ten without a division.
#[derive(Clone, Copy)]
struct Decade {
    /// `10^d`.
    power: u64,
    /// `2^(64 + shift) / 10^d`, rounded up; 0 for `d = 0`, where that is one more than there is room for.
    inverse: u64,
    /// All bits for `d = 0`: the number itself is the digit. None elsewhere.
    itself: u64,
    shift: u32,
}

/// The powers of ten that there are in a `u64`.
const DECADES: usize = 20;

const TABLE: [Decade; DECADES] = {
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

/// By the number of leading zeros: the greatest power of ten that a number like that can reach.
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
    /// How many there are.
    pub const COUNT: usize = 9 * (DECADES - 1) + 2;

    /// The one with this number.
    ///
    /// There is no division, no loop and no jump in it: this is what a timer does at every event.
    #[inline(always)]
    pub const fn containing(value: u64) -> Self {
        // 0 has as many digits as 1; and no number is made one digit longer by this.
        let significant = value | 1;
        let reached = REACHED[(significant.leading_zeros() & 63) as usize];
        let decade = reached - (significant < TABLE[reached as usize].power) as u8;
        let Decade {
            inverse,
            itself,
            shift,
            ..
        } = TABLE[decade as usize];
        // Exact, as the digit is at most 9: the inverse is too large by less than 2^-63 of itself.
        let product = ((value as u128 * inverse as u128) >> 64) as u64;
        let digit = (product | (value & itself)) >> shift;
        Self(decade * 9 + digit as u8)
    }

    /// The one with this index, counted from the shortest; `None` if there are not so many.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Which it is, counted from 0, the bin of 0 alone.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The least number in it.
    pub const fn low(self) -> u64 {
        let (decade, digit) = self.parts();
        digit * TABLE[decade].power
    }

    /// The greatest number in it.
    pub const fn high(self) -> u64 {
        let (decade, _) = self.parts();
        self.low().saturating_add(TABLE[decade].power - 1)
    }

    /// The power of ten, and the first digit.
    const fn parts(self) -> (usize, u64) {
        let index = self.0 as usize;
        if index < 10 {
            (0, index as u64)
        } else {
            ((index - 1) / 9, (index - 1) as u64 % 9 + 1)
        }
    }
}

/// The numbers in it: `7`, `6000-6999`.
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

    /// As the paper says it: a search for the power of ten, and a division.
    fn by_division(value: u64) -> (u64, u64) {
        let mut power = 1;
        while value / power >= 10 {
            power *= 10;
        }
        let low = value / power * power;
        (low, low.saturating_add(power - 1))
    }

    #[test]
    fn every_bin_begins_where_the_last_one_ended() {
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
        assert_eq!(next, None, "the last one ends with the numbers");
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
        fn any_number_is_in_its_bin(value: u64, zeros in 0_u32..64) {
            let value = value >> zeros;
            let bin = DecimalBin::containing(value);
            prop_assert_eq!((bin.low(), bin.high()), by_division(value));
        }
    }
}
