//! Numbers of variable length: seven bits in each byte, lowest first; the highest bit of a byte tells that another one follows.

/// Appends a number.
#[inline]
pub fn write_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a number that can be negative, as [`from_signed`] maps it.
#[inline]
pub fn put_signed(to: &mut Vec<u8>, number: i64) {
    write_varint(to, from_signed(number));
}

/// Reads a number byte by byte; `None` if it has more than 64 bits.
///
/// # Errors
/// Those of `next`.
#[inline]
pub fn read<E>(mut next: impl FnMut() -> Result<u8, E>) -> Result<Option<u64>, E> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = next()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The lowest bit of each byte.
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Takes a number from the beginning of these bytes; `None` if they do not begin with one.
// Inlined because returning the result through memory takes longer than computing it.
#[inline(always)]
pub fn read_varint(from: &mut &[u8]) -> Option<u64> {
    // Lengths vary from number to number, so eight bytes at once are faster than a loop.
    if let Some(eight) = from.first_chunk() {
        let word = u64::from_le_bytes(*eight);
        let ends = !word & (0x80 * EACH_BYTE);
        if ends != 0 {
            let bits = ends.trailing_zeros() + 1;
            *from = &from[bits as usize / 8..];
            let bytes = word & (u64::MAX >> (64 - bits)) & (0x7f * EACH_BYTE);
            let pairs = bytes & 0x007f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
            let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
            return Some(fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4);
        }
    }
    take_slowly(from)
}

fn take_slowly(from: &mut &[u8]) -> Option<u64> {
    let next = || {
        let (first, rest) = from.split_first().ok_or(())?;
        *from = rest;
        Ok::<_, ()>(*first)
    };
    read(next).ok()?
}

/// Maps a number so that those near zero become small ones: the lowest bit is the sign.
#[inline]
pub const fn from_signed(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Reverses [`from_signed`].
#[inline]
pub const fn to_signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8]) -> Result<Option<u64>, ()> {
        let mut bytes = bytes.iter();
        read(|| bytes.next().copied().ok_or(()))
    }

    #[test]
    fn numbers_are_read_as_they_were_put() {
        for bits in 0..=64 {
            for number in [u64::MAX, 0x5555_5555_5555_5555, 1 << 63] {
                let number = number.checked_shr(64 - bits).unwrap_or(0);
                let mut bytes = vec![];
                write_varint(&mut bytes, number);
                assert_eq!(read_all(&bytes), Ok(Some(number)));
                assert_eq!(read_all(&bytes[..bytes.len() - 1]), Err(()));
                let signed = number as i64;
                assert_eq!(to_signed(from_signed(signed)), signed);
            }
        }
        assert_eq!([-2, -1, 0, 1, 2].map(from_signed), [3, 1, 0, 2, 4]);
    }

    #[test]
    fn numbers_are_taken_with_and_without_bytes_behind() {
        for bits in 0..=64 {
            for number in [u64::MAX, 0x5555_5555_5555_5555, 1 << 63] {
                let number = number.checked_shr(64 - bits).unwrap_or(0);
                let mut bytes = vec![];
                write_varint(&mut bytes, number);
                let end = bytes.len();
                bytes.extend([0x81; 8]);
                for bytes in [&bytes[..], &bytes[..end]] {
                    let mut rest = bytes;
                    assert_eq!(read_varint(&mut rest), Some(number));
                    assert_eq!(rest, &bytes[end..]);
                }
                assert_eq!(read_varint(&mut &bytes[..end - 1]), None);
            }
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_none() {
        let mut bytes = [0xff; 10];
        bytes[9] = 1;
        assert_eq!(read_all(&bytes), Ok(Some(u64::MAX)));
        bytes[9] = 2;
        assert_eq!(read_all(&bytes), Ok(None));
        assert_eq!(read_all(&[0x80; 11]), Ok(None));
    }
}
