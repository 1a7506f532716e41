//! A hash on which processes agree.

use core::hash::{Hash, Hasher};

/// Hasher with the same result in all processes, also of programs that were compiled by other compilers or for other
/// processors, as [`all_equal`](crate::collective::all_equal) needs it: FNV-1a with 64 bits. The standard library promises
/// that for none of its hashers.
///
/// ```
/// use core::hash::Hasher;
/// use downbeat_sync::StableHasher;
///
/// let mut hasher = StableHasher::default();
/// hasher.write(b"foobar");
/// assert_eq!(hasher.finish(), 0x8594_4171_f739_67e8);
/// ```
#[derive(Clone, Debug)]
pub struct StableHasher(u64);

impl StableHasher {
    /// Returns the hash of a value.
    pub fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
        let mut hasher = Self::default();
        value.hash(&mut hasher);
        hasher.finish()
    }
}

impl Default for StableHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        const PRIME: u64 = 0x100_0000_01b3;
        let next = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        self.0 = bytes.iter().fold(self.0, next);
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_same_bytes_everywhere() {
        assert_eq!(StableHasher::hash_of(&()), 0xcbf2_9ce4_8422_2325);
        let mut bytes = StableHasher::default();
        bytes.write(&[3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0]);
        assert_eq!(StableHasher::hash_of(&[1_u16, 2, 3][..]), bytes.finish());
    }
}
