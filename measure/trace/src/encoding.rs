//! Values as bytes: events that wait in temporary files, and what ranks tell each other.

use core::hash::Hash;
use core::iter;
use std::collections::hash_map::Entry;

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_files::varint;
use rustc_hash::FxHashMap;

/// Value that can be written as bytes.
pub(crate) trait Encoded<'a>: Sized {
    /// Appends the value.
    fn encode(&self, to: &mut Vec<u8>);

    /// Takes a value from the beginning of these bytes; `None` if they do not begin with
    /// one.
    fn decode(from: &mut &'a [u8]) -> Option<Self>;
}

/// Report on a part of a trace, which can be merged with those on the other parts.
pub(crate) trait Merge {
    /// Adds the report on another part.
    fn merge(&mut self, other: Self);
}

/// Merges reports on all parts of a trace; `None` without any.
pub(crate) fn merge_all<T: Merge>(parts: impl IntoIterator<Item = T>) -> Option<T> {
    parts.into_iter().reduce(|mut merged, part| {
        merged.merge(part);
        merged
    })
}

/// Returns the values that these bytes consist of.
pub(crate) fn decode_values<'a, T: Encoded<'a>>(mut from: &'a [u8]) -> impl Iterator<Item = T> {
    iter::from_fn(move || T::decode(&mut from))
}

/// Declares an enumeration, and its encoding: a byte for the kind, then the fields in
/// their order.
macro_rules! encoded_enum {
    (
        $life:lifetime:
        $(#[$outer:meta])*
        pub enum $name:ident $(<$of:lifetime>)? {$(
            $(#[$meta:meta])*
            $kind:ident
                $({ $($(#[$of_field:meta])* $field:ident: $type:ty,)+ })?
                $(($text:ident: $text_type:ty))? = $tag:literal,
        )+}
    ) => {
        $(#[$outer])*
        pub enum $name $(<$of>)? {$(
            $(#[$meta])*
            $kind $({ $($(#[$of_field])* $field: $type,)+ })? $(($text_type))?,
        )+}

        impl<$life> $crate::encoding::Encoded<$life> for $name $(<$of>)? {
            #[inline]
            fn encode(&self, to: &mut Vec<u8>) {
                match self {$(
                    Self::$kind $({ $($field,)+ })? $(($text))? => {
                        to.push($tag);
                        $($($crate::encoding::Encoded::encode($field, to);)+)?
                        $($crate::encoding::Encoded::encode($text, to);)?
                    }
                )+}
            }

            #[inline]
            fn decode(from: &mut &$life [u8]) -> Option<Self> {
                Some(match <u8 as $crate::encoding::Encoded>::decode(from)? {
                    $($tag => {
                        $($(let $field = $crate::encoding::Encoded::decode(from)?;)+)?
                        $(let $text = $crate::encoding::Encoded::decode(from)?;)?
                        Self::$kind $({ $($field,)+ })? $(($text))?
                    })+
                    _ => return None,
                })
            }
        }
    };
}

/// Encodes values as another type.
macro_rules! encode_as {
    ($($type:ty as $other:ty: $to:expr, $from:expr;)+) => {$(
        impl<'a> $crate::encoding::Encoded<'a> for $type {
            #[inline]
            fn encode(&self, to: &mut Vec<u8>) {
                <$other as $crate::encoding::Encoded<'a>>::encode(&$to(*self), to);
            }

            #[inline]
            fn decode(from: &mut &'a [u8]) -> Option<Self> {
                <$other as $crate::encoding::Encoded<'a>>::decode(from).and_then($from)
            }
        }
    )+};
}

/// Encodes structures field by field.
macro_rules! encoded {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {$(
        impl<'a> $crate::encoding::Encoded<'a> for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                $($crate::encoding::Encoded::encode(&self.$field, to);)+
            }

            fn decode(from: &mut &'a [u8]) -> Option<Self> {
                Some(Self {
                    $($field: $crate::encoding::Encoded::decode(from)?,)+
                })
            }
        }
    )+};
}

/// Encodes and merges structures field by field.
macro_rules! merged {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {$(
        $crate::encoding::encoded! { $name { $($field),+ } }

        impl $crate::encoding::Merge for $name {
            fn merge(&mut self, other: Self) {
                $($crate::encoding::Merge::merge(&mut self.$field, other.$field);)+
            }
        }
    )+};
}

pub(crate) use {encode_as, encoded, encoded_enum, merged};

impl<'a> Encoded<'a> for u8 {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    #[inline]
    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        from.split_off_first().copied()
    }
}

impl<'a> Encoded<'a> for u64 {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        varint::write_varint(to, *self);
    }

    #[inline]
    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        varint::read_varint(from)
    }
}

encode_as! {
    u32 as u64: u64::from, |number| number.try_into().ok();
    usize as u64: |number| number as u64, |number| number.try_into().ok();
    i64 as u64: varint::from_signed, |number| Some(varint::to_signed(number));
    i32 as i64: i64::from, |number| number.try_into().ok();
    f64 as u64: f64::to_bits, |bits| Some(Self::from_bits(bits));
    u128 as (u64, u64): |sum| (sum as u64, (sum >> 64) as u64),
        |(low, high)| Some(Self::from(high) << 64 | Self::from(low));
    i128 as u128: |sum| sum as u128, |sum| Some(sum as Self);
    bool as u8: u8::from, |number| Some(number == 1);
    Duration as i64: Self::as_nanos, |nanos| Some(Self::from_nanos(nanos));
    Timestamp<Global> as i64: Self::as_nanos, |nanos| Some(Self::from_nanos(nanos));
}

impl<'a> Encoded<'a> for &'a str {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.len() as u64).encode(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        let length = usize::try_from(u64::decode(from)?).ok()?;
        core::str::from_utf8(from.split_off(..length)?).ok()
    }
}

impl<'a, T: Encoded<'a>> Encoded<'a> for Option<T> {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        self.is_some().encode(to);
        if let Some(value) = self {
            value.encode(to);
        }
    }

    #[inline]
    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        Some(match bool::decode(from)? {
            true => Some(T::decode(from)?),
            false => None,
        })
    }
}

impl<'a, T: Encoded<'a>, const N: usize> Encoded<'a> for [T; N] {
    fn encode(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|value| value.encode(to));
    }

    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        let values = (0..N).map(|_| T::decode(from));
        values.collect::<Option<Vec<T>>>()?.try_into().ok()
    }
}

impl<'a, T: Encoded<'a>> Encoded<'a> for Vec<T> {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.len() as u64).encode(to);
        self.iter().for_each(|value| value.encode(to));
    }

    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        let length = u64::decode(from)?;
        (0..length).map(|_| T::decode(from)).collect()
    }
}

impl<'a, A: Encoded<'a>, B: Encoded<'a>> Encoded<'a> for (A, B) {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        self.0.encode(to);
        self.1.encode(to);
    }

    #[inline]
    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        Some((A::decode(from)?, B::decode(from)?))
    }
}

impl<'a, K: Encoded<'a> + Eq + Hash, V: Encoded<'a>> Encoded<'a> for FxHashMap<K, V> {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.len() as u64).encode(to);
        for (key, value) in self {
            key.encode(to);
            value.encode(to);
        }
    }

    fn decode(from: &mut &'a [u8]) -> Option<Self> {
        Some(Vec::decode(from)?.into_iter().collect())
    }
}

/// Rule by which numbers of a report are merged, by their types.
macro_rules! merge_by {
    ($($type:ty: |$mine:ident, $other:ident| $merged:expr;)+) => {$(
        impl Merge for $type {
            #[inline]
            fn merge(&mut self, $other: Self) {
                let $mine = *self;
                *self = $merged;
            }
        }
    )+};
}

merge_by! {
    u64: |mine, other| mine + other;
    u128: |mine, other| mine.saturating_add(other);
    i128: |mine, other| mine + other;
    f64: |mine, other| mine.max(other);
    bool: |mine, other| mine || other;
    Duration: |mine, other| mine.max(other);
}

/// Shortest duration, if any is known.
impl Merge for Option<Duration> {
    fn merge(&mut self, other: Self) {
        if let Some(other) = other {
            *self = Some(self.map_or(other, |known| known.min(other)));
        }
    }
}

impl<T> Merge for Vec<T> {
    fn merge(&mut self, other: Self) {
        self.extend(other);
    }
}

impl<T: Merge, const N: usize> Merge for [T; N] {
    fn merge(&mut self, other: Self) {
        for (mine, other) in self.iter_mut().zip(other) {
            mine.merge(other);
        }
    }
}

impl<K: Eq + Hash, V: Merge> Merge for FxHashMap<K, V> {
    fn merge(&mut self, other: Self) {
        for (key, value) in other {
            match self.entry(key) {
                Entry::Occupied(mine) => mine.into_mut().merge(value),
                Entry::Vacant(place) => drop(place.insert(value)),
            }
        }
    }
}
