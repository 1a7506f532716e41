//! CRC-32, as of gzip and PNG.

/// Checksum of bytes that arrive in pieces.
#[derive(Clone, Debug, Default)]
pub struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// Returns the checksum of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> u32 {
        crc32fast::hash(bytes)
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum of all bytes so far.
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        assert_eq!(Crc32::of_bytes(b"123456789"), 0xcbf4_3926);
        let mut crc = Crc32::default();
        [&b"1234"[..], b"", b"56789"]
            .iter()
            .for_each(|part| crc.add(part));
        assert_eq!(crc.value(), 0xcbf4_3926);
    }
}
