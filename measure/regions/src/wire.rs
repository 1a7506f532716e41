//! Binary encoding of parts of reports for messages: integers in little-endian order.
//!
//! This takes most of the time of merging, so that decoding reuses the memory of older values.

use downbeat_clock_core::histogram::DecimalBin;
use downbeat_clock_core::region::RegionEvent;

use super::groups::{BinCounts, HistogramGroup, RankCount};
use super::paths::PathReport;
use super::profile::{PathProfile, RegionProfile, ReportRemarks, ThreadEvent, ThreadTotal};
use super::ranks::{RankRun, RankSet};
use super::report::{EventReport, RankEvent, RankThread, RankTotal, RegionReport};

/// A value with a binary encoding.
pub(super) trait Wire: Sized {
    /// Makes an arbitrary value, to decode into.
    fn blank() -> Self;

    /// Appends the encoding of the value.
    fn put(&self, to: &mut Vec<u8>);

    /// Decodes a value from the front of `from` into `self`; `None` if it is invalid, and `self` is
    /// arbitrary then.
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()>;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Wire for $type {
            fn blank() -> Self {
                0
            }
            #[inline]
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
                let (bytes, rest) = from.split_first_chunk()?;
                (*self, *from) = (Self::from_le_bytes(*bytes), rest);
                Some(())
            }
        }
    )* };
}

numbers!(u8, u32, u64, u128);

/// Decodes a value from the front of `from`.
#[inline]
pub(super) fn taken<T: Wire>(from: &mut &[u8]) -> Option<T> {
    let mut value = T::blank();
    value.set_from(from)?;
    Some(value)
}

/// Encodes a count. Counts fit in u32.
fn put_count(count: usize, to: &mut Vec<u8>) {
    (count as u32).put(to);
}

/// Decodes a count. Every counted item has at least one byte, so that a wrong count cannot exhaust
/// the memory.
fn take_count(from: &mut &[u8]) -> Option<usize> {
    let count = taken::<u32>(from)? as usize;
    (count <= from.len()).then_some(count)
}

impl Wire for DecimalBin {
    fn blank() -> Self {
        Self::containing(0)
    }
    #[inline]
    fn put(&self, to: &mut Vec<u8>) {
        (self.index() as u8).put(to);
    }
    #[inline]
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        *self = Self::from_index(taken::<u8>(from)?.into())?;
        Some(())
    }
}

impl Wire for String {
    fn blank() -> Self {
        Self::new()
    }
    fn put(&self, to: &mut Vec<u8>) {
        put_count(self.len(), to);
        to.extend_from_slice(self.as_bytes());
    }
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        let length = take_count(from)?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        self.clear();
        self.push_str(core::str::from_utf8(text).ok()?);
        Some(())
    }
}

impl<T: Wire> Wire for Option<T> {
    fn blank() -> Self {
        None
    }
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(self.is_some()).put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        match taken::<u8>(from)? {
            0 => *self = None,
            1 => self.get_or_insert_with(T::blank).set_from(from)?,
            _ => return None,
        }
        Some(())
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn blank() -> Self {
        Self::new()
    }
    fn put(&self, to: &mut Vec<u8>) {
        put_count(self.len(), to);
        self.iter().for_each(|value| value.put(to));
    }
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        self.resize_with(take_count(from)?, T::blank);
        self.iter_mut().try_for_each(|value| value.set_from(from))
    }
}

/// Encoded one after the other.
impl<A: Wire, B: Wire> Wire for (A, B) {
    fn blank() -> Self {
        (A::blank(), B::blank())
    }
    #[inline]
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }
    #[inline]
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        self.0.set_from(from)?;
        self.1.set_from(from)
    }
}

/// Encoded as one byte if there are none, as in most regions.
impl Wire for ReportRemarks {
    fn blank() -> Self {
        Self::default()
    }
    fn put(&self, to: &mut Vec<u8>) {
        let has_any = *self != Self::default();
        u8::from(has_any).put(to);
        if has_any {
            self.values().iter().for_each(|value| value.put(to));
        }
    }
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        let mut values = [0; 5];
        if taken::<u8>(from)? != 0 {
            values
                .iter_mut()
                .try_for_each(|value: &mut u64| value.set_from(from))?;
        }
        *self = Self::from_values(values);
        Some(())
    }
}

impl Wire for RankSet {
    fn blank() -> Self {
        Self::default()
    }
    fn put(&self, to: &mut Vec<u8>) {
        self.len().put(to);
        put_count(self.runs().len(), to);
        self.runs().iter().for_each(|run| run.put(to));
    }
    fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
        let mut runs = core::mem::take(self).into_runs();
        let count = taken(from)?;
        runs.set_from(from)?;
        *self = Self::from_parts(runs, count, u32::MAX)?;
        Some(())
    }
}

/// Encodes structs field by field.
macro_rules! fields {
    ($($type:ident { $($field:ident),* })*) => { $(
        impl Wire for $type {
            fn blank() -> Self {
                Self { $( $field: Wire::blank() ),* }
            }
            #[inline]
            fn put(&self, to: &mut Vec<u8>) {
                $( self.$field.put(to); )*
            }
            #[inline]
            fn set_from(&mut self, from: &mut &[u8]) -> Option<()> {
                $( self.$field.set_from(from)?; )*
                Some(())
            }
        }
    )* };
}

fields! {
    RankRun { first, count, stride }
    RankCount { count, rank }
    BinCounts { bin, most, least, sum }
    HistogramGroup { fullest, ranks, bins }
    RankEvent { length, rank, thread, number }
    RankTotal { total, events, rank }
    RankThread { total, events, rank, thread }
    ThreadTotal { thread, events, total }
    ThreadEvent { event, thread }
    RegionEvent { length, number }
    PathProfile { callers, events, total, own }
    RegionProfile { name, threads, events, total, longest, second_longest, shortest, bins, by_thread, paths, remarks }
    PathReport { callers, ranks, events, greatest_total, total, greatest_own, own_rank, own }
    RegionReport { name, remarks, remarked, events, paths }
    EventReport {
        ranks, most, fewest, count, longest, second_longest, shortest, longest_average, shortest_average, greatest_total,
        least_total, total, threads, all_threads, greatest_thread, least_thread, by_thread, groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Also decodes into existing values.
        #[test]
        fn values_are_decoded_as_encoded(wide: u128, word: u64, text: String, list: Vec<Option<u32>>, mut older: Vec<Option<u32>>) {
            let mut bytes = vec![];
            wide.put(&mut bytes);
            word.put(&mut bytes);
            text.put(&mut bytes);
            list.put(&mut bytes);
            let from = &mut &*bytes;
            prop_assert_eq!((taken::<u128>(from), taken::<u64>(from)), (Some(wide), Some(word)));
            prop_assert_eq!(taken::<String>(from), Some(text));
            prop_assert!(older.set_from(from).is_some());
            prop_assert_eq!(older, list);
            prop_assert!(from.is_empty());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            let _ = taken::<RegionReport>(&mut &*bytes);
            let _ = taken::<EventReport>(&mut &*bytes);
            let _ = taken::<RegionProfile>(&mut &*bytes);
        }
    }

    #[test]
    fn invalid_bytes_are_rejected() {
        assert_eq!(taken::<u64>(&mut &[0; 7][..]), None);
        assert_eq!(taken::<DecimalBin>(&mut &[255][..]), None);
        assert_eq!(taken::<Option<u8>>(&mut &[2, 0][..]), None);
        assert_eq!(taken::<Vec<u8>>(&mut &[255, 255, 255, 255, 1][..]), None);
        assert_eq!(taken::<String>(&mut &[1, 0, 0, 0, 0xff][..]), None);
    }
}
