//! Fields of records, which know how they are encoded.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use crate::raw::{Decoder, Order};

/// Type of a field.
pub trait Field<'a>: Sized {
    /// Decodes the field; `None` if it is truncated or not valid.
    fn decode(from: &mut Decoder<'a>) -> Option<Self>;

    /// Appends the encoded field.
    fn encode(&self, order: Order, to: &mut Vec<u8>);
}

impl Field<'_> for u8 {
    #[inline]
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        from.u8()
    }

    fn encode(&self, _: Order, to: &mut Vec<u8>) {
        to.push(*self);
    }
}

impl Field<'_> for u32 {
    #[inline]
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        from.u32()
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        order.put_u32(*self, to);
    }
}

impl Field<'_> for u64 {
    #[inline]
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        from.u64()
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        order.write_number(*self, to);
    }
}

impl Field<'_> for i64 {
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        Some(from.u64()? as i64)
    }

    /// There is no undefined one: -1 takes eight bytes, as every negative number.
    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        match *self {
            -1 => {
                to.push(8);
                to.extend([0xff; 8]);
            }
            number => order.write_number(number as u64, to),
        }
    }
}

impl<'a> Field<'a> for Cow<'a, str> {
    fn decode(from: &mut Decoder<'a>) -> Option<Self> {
        from.text()
    }

    /// A zero byte ends the text.
    fn encode(&self, _: Order, to: &mut Vec<u8>) {
        let end = self.find('\0').unwrap_or(self.len());
        to.extend_from_slice(&self.as_bytes()[..end]);
        to.push(0);
    }
}

/// Time in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixedTime(
    /// Ticks of the clock.
    pub u64,
);

impl Field<'_> for FixedTime {
    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        from.fixed(8).map(Self)
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        to.extend(order.bytes(self.0));
    }
}

impl<'a, A: Field<'a>, B: Field<'a>> Field<'a> for (A, B) {
    fn decode(from: &mut Decoder<'a>) -> Option<Self> {
        Some((A::decode(from)?, B::decode(from)?))
    }

    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        self.0.encode(order, to);
        self.1.encode(order, to);
    }
}

/// List of a record that is read, or of one that will be written. Its length is a number of type `N` in the
/// file.
///
/// ```
/// use downbeat_otf2::{List, StringRef};
///
/// let arguments: List<StringRef> = [StringRef(3), StringRef(8)][..].into();
/// assert_eq!(arguments.iter().last(), Some(StringRef(8)));
/// ```
pub struct List<'a, T, N = u32> {
    items: Items<'a, T>,
    length: PhantomData<N>,
}

/// List whose length is a byte in the file.
pub type ShortList<'a, T> = List<'a, T, u8>;

enum Items<'a, T> {
    Encoded { items: Decoder<'a>, count: usize },
    Slice(&'a [T]),
}

impl<T, N> Clone for List<'_, T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, N> Copy for List<'_, T, N> {}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<'_, T> {}

impl<T, N> Default for List<'_, T, N> {
    fn default() -> Self {
        [][..].into()
    }
}

impl<'a, T, N> From<&'a [T]> for List<'a, T, N> {
    fn from(slice: &'a [T]) -> Self {
        Self {
            items: Items::Slice(slice),
            length: PhantomData,
        }
    }
}

impl<T, N> List<'_, T, N> {
    /// Returns the number of items.
    pub const fn len(&self) -> usize {
        match self.items {
            Items::Encoded { count, .. } => count,
            Items::Slice(slice) => slice.len(),
        }
    }

    /// Returns true if there are no items.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Field<'a> + Copy, N> List<'a, T, N> {
    /// Iterates over the items.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T, N> {
        let mut items = self.items;
        core::iter::from_fn(move || match &mut items {
            Items::Encoded { count: 0, .. } => None,
            Items::Encoded { items, count } => {
                *count -= 1;
                T::decode(items)
            }
            Items::Slice(slice) => {
                let (first, rest) = slice.split_first()?;
                *slice = rest;
                Some(*first)
            }
        })
    }
}

impl<'a, T: Field<'a> + Copy, N: Length> Field<'a> for List<'a, T, N> {
    fn decode(from: &mut Decoder<'a>) -> Option<Self> {
        let count: usize = N::decode(from)?.try_into().ok()?;
        let items = *from;
        // An item has a byte at least, so a wrong count takes no time.
        for _ in 0..count {
            T::decode(from)?;
        }
        Some(Self {
            items: Items::Encoded { items, count },
            length: PhantomData,
        })
    }

    /// The items after the largest length are left out.
    fn encode(&self, order: Order, to: &mut Vec<u8>) {
        let count = self.len().min(N::LARGEST);
        if let Ok(length) = N::try_from(count) {
            length.encode(order, to);
        }
        self.iter()
            .take(count)
            .for_each(|item| item.encode(order, to));
    }
}

impl<'a, T: Field<'a> + Copy + PartialEq, N> PartialEq for List<'a, T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a, T: Field<'a> + Copy + fmt::Debug, N> fmt::Debug for List<'a, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Length of a list.
trait Length: for<'a> Field<'a> + TryFrom<usize> + TryInto<usize> {
    const LARGEST: usize;
}

impl Length for u8 {
    const LARGEST: usize = Self::MAX as usize;
}

impl Length for u32 {
    /// All ones are an undefined number.
    const LARGEST: usize = Self::MAX as usize - 1;
}
