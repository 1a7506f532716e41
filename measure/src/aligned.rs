//! Bytes that begin where they should.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::str::FromStr;

use crate::error::MethodError;

/// What the address of a buffer is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alignment(usize);

impl Alignment {
    /// A line of the caches of nearly all processors.
    pub const CACHE_LINE: Self = Self(64);

    /// A gigabyte: the largest pages there are.
    const GREATEST: usize = 1 << 30;

    /// From a number of bytes.
    ///
    /// # Errors
    /// When it is no power of two, or more than a gigabyte.
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

    /// In bytes.
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

/// A number of bytes.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BufferError {
    /// The memory cannot be allocated.
    NoMemory {
        /// Size of the buffer.
        bytes: usize,
    },
    /// The size of the cache to make cold is 0.
    NoCacheSize,
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMemory { bytes } => {
                write!(f, "there is no memory for a buffer of {bytes} bytes")
            }
            Self::NoCacheSize => f.write_str("the size of the cache to make cold must be above 0"),
        }
    }
}

impl core::error::Error for BufferError {}

/// Bytes that begin at a multiple of an alignment. All of them were written once, so that the memory is really there.
// Not `Clone`: the copy would lie elsewhere.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    /// Some more than are used. A vector, as to move a box is to promise that nobody else points into it; it never
    /// grows, and so stays where it is.
    all: Vec<u8>,
    begin: usize,
    len: usize,
}

impl AlignedBytes {
    /// So many zeros.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub(crate) fn new(len: usize, alignment: Alignment) -> Result<Self, BufferError> {
        let no_memory = BufferError::NoMemory { bytes: len };
        let all = len.checked_add(alignment.bytes() - 1).ok_or(no_memory)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(all).map_err(|_| no_memory)?;
        bytes.resize(all, 0);
        let all = bytes;
        let address = all.as_ptr().addr();
        // Less than the alignment, so within what was added.
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
        fn bytes_begin_at_a_multiple_and_stay_there(len in 0_usize..10_000, power in 0_u32..17) {
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
    fn memory_that_is_not_there_is_an_error() {
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
        let told = "3".parse::<Alignment>().unwrap_err().to_string();
        assert_eq!(
            told,
            "an alignment is a power of two up to 1073741824, which 3 is not"
        );
        let told = "8abc".parse::<Alignment>().unwrap_err().to_string();
        assert_eq!(
            told,
            "an alignment is a power of two up to 1073741824, which \"8abc\" is not"
        );
    }
}
