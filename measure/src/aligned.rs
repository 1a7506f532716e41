//! Aligned buffers.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::str::FromStr;

use crate::error::MethodError;

/// Alignment of a buffer: its address is a multiple of this number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alignment(usize);

impl Alignment {
    /// The cache line of nearly all processors.
    pub const CACHE_LINE: Self = Self(64);

    /// A gigabyte: the largest page size.
    const GREATEST: usize = 1 << 30;

    /// Creates an alignment from a number of bytes.
    ///
    /// # Errors
    /// If the number is not a power of two, or more than a gigabyte.
    pub fn new(bytes: usize) -> Result<Self, MethodError> {
        let fits = bytes.is_power_of_two() && bytes <= Self::GREATEST;
        if fits {
            Ok(Self(bytes))
        } else {
            Err(Self::refuse(bytes.to_string()))
        }
    }

    fn refuse(found: String) -> MethodError {
        let most = Self::GREATEST;
        MethodError::Alignment { found, most }
    }

    /// Returns the alignment in bytes.
    pub const fn bytes(self) -> usize {
        self.0
    }
}

impl Default for Alignment {
    fn default() -> Self {
        Self::CACHE_LINE
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Parses a number of bytes.
impl FromStr for Alignment {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let bytes = text
            .parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| Self::refuse(format!("\"{text}\"")))?;
        Self::new(bytes)
    }
}

/// Memory or caches that cannot be set up for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The memory cannot be allocated.
    #[error("there is no memory for a buffer of {bytes} bytes")]
    NoMemory {
        /// Size of the buffer.
        bytes: usize,
    },
    /// The size of the cache to make cold is 0.
    #[error("the size of the cache to make cold must be above 0")]
    NoCacheSize,
}

/// Buffer that begins at a multiple of an alignment. All bytes were written once, so that the system has provided the
/// memory.
// Not `Clone`: the copy would have another address.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    /// More bytes than are used. A vector instead of a box, as moving a box asserts that there are no other pointers to its
    /// content; the vector never grows, so its content never moves.
    all: Vec<u8>,
    begin: usize,
    len: usize,
}

impl AlignedBytes {
    /// Allocates zeros.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(crate) fn new(len: usize, alignment: Alignment) -> Result<Self, BufferError> {
        let no_memory = BufferError::NoMemory { bytes: len };
        let all = len.checked_add(alignment.bytes() - 1).ok_or(no_memory)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(all).map_err(|_| no_memory)?;
        bytes.resize(all, 0);
        let all = bytes;
        let address = all.as_ptr().addr();
        // Less than the alignment, so within the added bytes.
        let begin = address.next_multiple_of(alignment.bytes()) - address;
        Ok(Self { all, begin, len })
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.all[self.begin..self.begin + self.len]
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.all[self.begin..self.begin + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buffers_are_aligned_and_do_not_move(len in 0_usize..10_000, power in 0_u32..17) {
            let alignment = Alignment::new(1 << power).unwrap();
            let mut bytes = AlignedBytes::new(len, alignment).unwrap();
            prop_assert_eq!(bytes.as_ptr().addr() % alignment.bytes(), 0);
            prop_assert_eq!(&*bytes, &vec![0; len]);
            bytes.fill(7);
            let moved = Box::new(bytes);
            prop_assert_eq!(moved.as_ptr().addr() % alignment.bytes(), 0);
            prop_assert_eq!(&**moved, &vec![7; len]);
        }
    }

    #[test]
    fn failing_allocations_are_errors() {
        for len in [usize::MAX, usize::MAX / 2, usize::MAX - 62] {
            let error = AlignedBytes::new(len, Alignment::default()).unwrap_err();
            assert_eq!(error, BufferError::NoMemory { bytes: len });
        }
        assert_eq!(
            BufferError::NoMemory { bytes: 9 }.to_string(),
            "there is no memory for a buffer of 9 bytes"
        );
    }

    #[test]
    fn alignments_are_powers_of_two() {
        for label in ["1", "8", "64", "4096", "1073741824"] {
            assert_eq!(label.parse::<Alignment>().unwrap().to_string(), label);
        }
        for wrong in [
            "",
            "0",
            "3",
            "+8",
            "-8",
            "8abc",
            "2147483648",
            "99999999999999999999",
            " 8",
        ] {
            assert!(wrong.parse::<Alignment>().is_err(), "{wrong}");
        }
        let message = "3".parse::<Alignment>().unwrap_err().to_string();
        assert_eq!(
            message,
            "an alignment is a power of two up to 1073741824, which 3 is not"
        );
        let message = "8abc".parse::<Alignment>().unwrap_err().to_string();
        assert_eq!(
            message,
            "an alignment is a power of two up to 1073741824, which \"8abc\" is not"
        );
    }
}
