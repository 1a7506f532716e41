//! Data of a record, field by field.

use std::borrow::Cow;

use super::{LONG, Order};
use crate::Mappings;

/// Data of a record that are not decoded yet. Numbers are those of the file; references of a location
/// become those of the archive.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    order: Order,
    mappings: &'a Mappings,
}

impl<'a> Decoder<'a> {
    /// Decodes these bytes, whose references are those of the archive.
    pub const fn new(bytes: &'a [u8], order: Order) -> Self {
        Self::mapped(bytes, order, &Mappings::NONE)
    }

    /// Decodes these bytes, whose references are those of a location with these mappings.
    #[inline]
    pub const fn mapped(bytes: &'a [u8], order: Order, mappings: &'a Mappings) -> Self {
        Self {
            bytes,
            order,
            mappings,
        }
    }

    /// Returns the bytes that are not decoded.
    pub const fn remaining(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns true if all bytes are decoded.
    pub const fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(crate) const fn mappings(&self) -> &'a Mappings {
        self.mappings
    }

    /// Decodes a byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// Decodes a number of variable length, or all ones for an undefined one.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        match self.u8()? {
            LONG => Some(u64::MAX),
            length if length <= 8 => self.fixed(length.into()),
            _ => None,
        }
    }

    /// Decodes a number of variable length that has at most 32 bits.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        let number = self.u64()?;
        if number == u64::MAX {
            Some(u32::MAX)
        } else {
            u32::try_from(number).ok()
        }
    }

    /// Decodes a number of this number of bytes, at most eight.
    #[inline]
    pub fn fixed(&mut self, length: usize) -> Option<u64> {
        let (number, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(self.order.number(number))
    }

    /// Decodes a text, which ends with a zero byte. What is not UTF-8 is replaced.
    pub fn text(&mut self) -> Option<Cow<'a, str>> {
        let length = self.bytes.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = &rest[1..];
        Some(String::from_utf8_lossy(text))
    }
}
