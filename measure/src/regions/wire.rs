//! Parts of reports as bytes, for other ranks: numbers take as many bytes as they have to.

use downbeat_clock_core::DecimalBin;

use super::groups::{BinCounts, CountOf, HistogramGroup};
use super::profile::Remarks;
use super::ranks::{RankSet, Run};
use super::report::{EventReport, RankEvent, RankTotal, RegionReport};
use super::setup::Overhead;

/// What can be made of bytes again.
pub(super) trait Wire: Sized {
    /// Adds the value to bytes.
    fn put(&self, to: &mut Vec<u8>);

    /// Takes a value from the front; `None` if there is none.
    fn get(from: &mut &[u8]) -> Option<Self>;
}

/// Seven bits to the byte, the lowest first; all but the last have the highest bit.
impl Wire for u128 {
    fn put(&self, to: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            to.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        to.push(rest as u8);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let mut value = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let (byte, rest) = from.split_first()?;
            *from = rest;
            let bits = Self::from(byte & 0x7f);
            // No bit may be lost.
            value |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

/// By way of a longer number.
macro_rules! narrow {
    ($($type:ty),*) => { $(
        impl Wire for $type {
            fn put(&self, to: &mut Vec<u8>) {
                u128::from(*self).put(to);
            }
            fn get(from: &mut &[u8]) -> Option<Self> {
                Self::try_from(u128::get(from)?).ok()
            }
        }
    )* };
}

narrow!(u32, u64);

impl Wire for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push((*self).into());
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        match u32::get(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for DecimalBin {
    fn put(&self, to: &mut Vec<u8>) {
        (self.index() as u32).put(to);
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        Self::from_index(u32::get(from)? as usize)
    }
}

impl Wire for String {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        to.extend(self.as_bytes());
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u64::get(from)?).ok()?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        Self::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::get(from)? { Some(T::get(from)?) } else { None })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        let count = u64::get(from)?;
        // Every value has at least a byte: what says otherwise shall not cost memory.
        (count <= from.len() as u64).then_some(())?;
        (0..count).map(|_| T::get(from)).collect()
    }
}

impl Wire for Remarks {
    fn put(&self, to: &mut Vec<u8>) {
        self.values().iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        let mut values = [0; 5];
        for value in &mut values {
            *value = u64::get(from)?;
        }
        Some(Self::from_values(values))
    }
}

impl Wire for RankSet {
    fn put(&self, to: &mut Vec<u8>) {
        self.runs().to_vec().put(to);
        self.len().put(to);
    }
    fn get(from: &mut &[u8]) -> Option<Self> {
        let runs = Vec::get(from)?;
        Self::from_parts(runs, u32::get(from)?, u32::MAX)
    }
}

/// Field by field.
macro_rules! fields {
    ($($type:ident { $($field:ident),* })*) => { $(
        impl Wire for $type {
            fn put(&self, to: &mut Vec<u8>) {
                $( self.$field.put(to); )*
            }
            fn get(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $( $field: Wire::get(from)? ),* })
            }
        }
    )* };
}

fields! {
    Run { first, count, stride }
    CountOf { count, rank }
    BinCounts { bin, most, least, sum }
    HistogramGroup { fullest, ranks, bins }
    Overhead { within_picos, whole_picos, subtracted }
    RankEvent { length, rank, thread, number }
    RankTotal { total, events, rank }
    RegionReport { name, remarks, remarked, events }
    EventReport {
        ranks, most, fewest, count, longest, second_longest, shortest, longest_average, shortest_average, greatest_total,
        least_total, total, threads, groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_is_got(wide: u128, word: u64, short: u32, text: String, list: Vec<Option<u32>>) {
            let mut bytes = vec![];
            wide.put(&mut bytes);
            word.put(&mut bytes);
            short.put(&mut bytes);
            text.put(&mut bytes);
            list.put(&mut bytes);
            let from = &mut &*bytes;
            prop_assert_eq!((u128::get(from), u64::get(from), u32::get(from)), (Some(wide), Some(word), Some(short)));
            prop_assert_eq!((String::get(from), Vec::get(from)), (Some(text), Some(list)));
            prop_assert!(from.is_empty());
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = RegionReport::get(&mut &*bytes);
            let _ = EventReport::get(&mut &*bytes);
        }
    }

    #[test]
    fn small_numbers_are_short_and_others_are_refused() {
        let mut bytes = vec![];
        127_u64.put(&mut bytes);
        assert_eq!(bytes, [127]);
        assert_eq!(u32::get(&mut &[0xff, 0xff, 0xff, 0xff, 0x1f][..]), None);
        assert_eq!(u128::get(&mut &[0xff; 30][..]), None);
        assert_eq!(Vec::<u64>::get(&mut &[0xff, 0xff, 0xff, 0xff, 0x0f, 1][..]), None);
    }
}
