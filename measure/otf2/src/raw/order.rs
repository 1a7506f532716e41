//! Byte orders, and numbers in them.

use super::LONG;

/// Byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The lowest byte comes first.
    #[default]
    Little = 0x42,
    /// The highest byte comes first.
    Big = 0x23,
}

impl Order {
    /// Returns the byte order that a header names.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Little, Self::Big]
            .into_iter()
            .find(|order| *order as u8 == byte)
    }

    /// Returns the byte order of a file of definitions; `None` if it is not one.
    pub fn of_file(file: &[u8]) -> Option<Self> {
        file.get(1).and_then(|order| Self::from_byte(*order))
    }

    /// Decodes a number of at most eight bytes.
    #[inline]
    pub fn number(self, bytes: &[u8]) -> u64 {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }

    /// Decodes a number of eight bytes.
    #[inline]
    pub fn full(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Encodes a number in eight bytes.
    #[inline]
    pub fn bytes(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// Appends a number of variable length; all ones are an undefined one.
    #[inline]
    pub fn write_number(self, number: u64, to: &mut Vec<u8>) {
        if number == u64::MAX {
            return to.push(LONG);
        }
        let length = 8 - number.leading_zeros() as usize / 8;
        to.push(length as u8);
        match self {
            Self::Little => to.extend_from_slice(&number.to_le_bytes()[..length]),
            Self::Big => to.extend_from_slice(&number.to_be_bytes()[8 - length..]),
        }
    }

    /// Appends a number of variable length that has at most 32 bits.
    #[inline]
    pub fn put_u32(self, number: u32, to: &mut Vec<u8>) {
        let is_undefined = number == u32::MAX;
        self.write_number(
            if is_undefined {
                u64::MAX
            } else {
                number.into()
            },
            to,
        );
    }
}
