//! Numbers of variable length: seven bits in each byte, lowest first; the highest bit of a byte tells that another one follows.

/// Appends a number.
#[inline]
pub fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a number that can be negative, as [`from_signed`] maps it.
#[inline]
pub fn put_signed(to: &mut Vec<u8>, number: i64) {
    put(to, from_signed(number));
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
                put(&mut bytes, number);
                assert_eq!(read_all(&bytes), Ok(Some(number)));
                assert_eq!(read_all(&bytes[..bytes.len() - 1]), Err(()));
                let signed = number as i64;
                assert_eq!(to_signed(from_signed(signed)), signed);
            }
        }
        assert_eq!([-2, -1, 0, 1, 2].map(from_signed), [3, 1, 0, 2, 4]);
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
