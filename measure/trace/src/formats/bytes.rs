//! Bytes and numbers of variable length, as the lists of events in temporary files have them.

pub(crate) use downbeat_files::varint::{put, put_signed};
use downbeat_files::{Flaw, varint};

/// Source of bytes that numbers and texts are read from.
pub(super) trait Input {
    /// Returns the offset of the next byte in the file.
    fn offset(&self) -> u64;

    /// Returns the next byte; `None` at the end.
    fn next(&mut self) -> Result<Option<u8>, Flaw>;

    /// Returns the next byte, or an error at the end.
    #[inline]
    fn byte(&mut self) -> Result<u8, Flaw> {
        self.next()?.ok_or_else(|| self.cut_off())
    }

    /// Reads a number with seven bits in each byte, lowest first.
    #[inline]
    fn number(&mut self) -> Result<u64, Flaw> {
        self.long_number()
    }

    /// Reads a number of any length up to 64 bits, byte by byte.
    fn long_number(&mut self) -> Result<u64, Flaw> {
        let offset = self.offset();
        let number = varint::read(|| self.byte())?;
        number.ok_or_else(|| Flaw::Byte(offset, "a number has more than 64 bits".to_owned()))
    }

    /// Reads a number of 32 bits; `what` names it in errors.
    #[inline]
    fn u32(&mut self, what: &str) -> Result<u32, Flaw> {
        let offset = self.offset();
        let number = self.number()?;
        u32::try_from(number).map_err(|_| Flaw::Byte(offset, format!("{number} is not {what}")))
    }

    /// Reads a number whose lowest bit is its sign.
    #[inline]
    fn signed(&mut self) -> Result<i64, Flaw> {
        let number = self.number()?;
        Ok(varint::to_signed(number))
    }

    /// Reads the length of a text of at most `longest` bytes.
    fn text_length(&mut self, longest: usize) -> Result<usize, Flaw> {
        let offset = self.offset();
        let length = self.number()?;
        if length > longest as u64 {
            let why = format!("a text of {length} bytes is longer than {longest} bytes");
            return Err(Flaw::Byte(offset, why));
        }
        Ok(length as usize)
    }

    /// Reads a text of at most `longest` bytes into `text`.
    fn text(&mut self, longest: usize, text: &mut String) -> Result<(), Flaw> {
        let offset = self.offset();
        let length = self.text_length(longest)?;
        let mut bytes = core::mem::take(text).into_bytes();
        bytes.clear();
        for _ in 0..length {
            bytes.push(self.byte()?);
        }
        *text = String::from_utf8(bytes)
            .map_err(|_| Flaw::Byte(offset, "a text is not UTF-8".to_owned()))?;
        Ok(())
    }

    fn cut_off(&self) -> Flaw {
        self.flaw("the file is cut off here")
    }

    /// Returns an error at the next byte.
    fn flaw(&self, why: &str) -> Flaw {
        Flaw::Byte(self.offset(), why.to_owned())
    }
}

/// The lowest bit of each byte.
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Bytes in memory.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of the first byte in the file.
    base: u64,
}

impl<'a> Slice<'a> {
    pub(super) const fn new(bytes: &'a [u8], at: usize, base: u64) -> Self {
        Self { bytes, at, base }
    }

    /// Returns the index of the next byte.
    pub(super) const fn at(&self) -> usize {
        self.at
    }
}

impl Input for Slice<'_> {
    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    #[inline]
    fn next(&mut self) -> Result<Option<u8>, Flaw> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        Ok(byte)
    }

    // Inlined because returning the result through memory takes longer than computing it.
    #[inline(always)]
    fn number(&mut self) -> Result<u64, Flaw> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        // Lengths vary from number to number, so eight bytes at once are faster than a loop.
        if let Some(eight) = rest.first_chunk() {
            let word = u64::from_le_bytes(*eight);
            let ends = !word & (0x80 * EACH_BYTE);
            if ends != 0 {
                let bits = ends.trailing_zeros() + 1;
                self.at += bits as usize / 8;
                let bytes = word & (u64::MAX >> (64 - bits)) & (0x7f * EACH_BYTE);
                let pairs = bytes & 0x007f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
                let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
                return Ok(fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4);
            }
        }
        self.long_number()
    }

    fn text(&mut self, longest: usize, text: &mut String) -> Result<(), Flaw> {
        let offset = self.offset();
        let length = self.text_length(longest)?;
        let end = self.at + length;
        let bytes = self.bytes.get(self.at..end).ok_or_else(|| self.cut_off())?;
        let found = core::str::from_utf8(bytes);
        let found = found.map_err(|_| Flaw::Byte(offset, "a text is not UTF-8".to_owned()))?;
        text.clear();
        text.push_str(found);
        self.at = end;
        Ok(())
    }
}

/// Takes a number from the beginning of these bytes; `None` if they do not begin with one.
#[inline]
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut slice = Slice::new(from, 0, 0);
    let number = slice.number().ok()?;
    *from = &from[slice.at()..];
    Some(number)
}

/// Appends a text as [`Input::text`] reads it.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_are_read_with_and_without_bytes_behind() {
        for bits in 0..=64 {
            for number in [u64::MAX, 0x5555_5555_5555_5555, 1 << 63] {
                let number = number.checked_shr(64 - bits).unwrap_or(0);
                let mut bytes = vec![0xff];
                put(&mut bytes, number);
                let end = bytes.len();
                bytes.extend([0x81; 8]);
                for bytes in [&bytes[..], &bytes[..end]] {
                    let mut slice = Slice::new(bytes, 1, 0);
                    assert_eq!(slice.number().unwrap(), number);
                    assert_eq!(slice.at(), end);
                }
                let mut cut_off = Slice::new(&bytes[..end - 1], 1, 0);
                assert!(cut_off.number().is_err());
            }
        }
    }
}
