//! Blocks of shared memory, to which one thread of a rank writes its records; when it has
//! ended, another may go on in its last block.
//!
//! A block is a file on tmpfs: it survives whatever ends the rank. Records follow a
//! header of eight words.

use std::io::Read as _;
use std::path::Path;

use downbeat_files::FileError;

/// First word of a block: format and version.
const MAGIC: u64 = u64::from_le_bytes(*b"dbblock2");

/// Number of words of the header.
pub const HEADER_WORDS: usize = 8;

/// Header of a block.
pub type Header = [u64; HEADER_WORDS];

/// Index of the word of the header that is the number among the blocks of the thread.
pub const SEQUENCE: usize = 3;

/// Index of the word of the header that is 1 when no thread writes to the block any more.
pub const FULL: usize = 4;

/// Index of the word of the header that is the order of the block among those of its
/// thread, from 1; 0 if nothing was written to it.
pub const ORDER: usize = 5;

/// Index of the word of the header that is the size of the block in bytes.
pub const SIZE: usize = 6;

/// Least size of a block in bytes. Blocks of a thread grow: a program with many threads
/// may have many that make few calls.
pub const LEAST_BYTES: usize = 1 << 16;
/// Largest size of a block in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// Ending of the names of blocks.
pub const ENDING: &str = "block";

/// Identity of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// Process that writes it.
    pub process: u32,
    /// Thread of the process that created it, counted from 0.
    pub thread: u32,
    /// Number among the blocks of the thread: blocks that are prepared ahead need not be
    /// used in this order.
    pub sequence: u32,
}

impl BlockId {
    /// Returns the header of a block of this size.
    pub const fn header(self, bytes: usize) -> Header {
        let [process, thread] = [self.process as u64, self.thread as u64];
        let (sequence, bytes) = (self.sequence as u64, bytes as u64);
        [MAGIC, process, thread, sequence, 0, 0, bytes, 0]
    }

    /// Returns the name of the file.
    pub fn file_name(self) -> String {
        format!(
            "{}.{}.{}.{ENDING}",
            self.process, self.thread, self.sequence
        )
    }

    /// Returns the block that has this file name; `None` if no block has it.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let mut parts = name.split('.').map_while(|part| part.parse().ok());
        let id = Self {
            process: parts.next()?,
            thread: parts.next()?,
            sequence: parts.next()?,
        };
        (id.file_name() == name).then_some(id)
    }
}

/// Reads the header of a block; `None` if it is just being created.
pub(crate) fn read_header(path: &Path) -> Option<Header> {
    read_words(path, HEADER_WORDS).ok()?.try_into().ok()
}

/// Reads the words of a block behind its header.
///
/// # Errors
/// If the file cannot be read, or holds something else.
pub(crate) fn read_block(path: &Path) -> Result<Vec<u64>, FileError> {
    let mut words = read_words(path, MOST_BYTES / size_of::<u64>())?;
    if words.len() < HEADER_WORDS || words[0] != MAGIC {
        return Err(FileError::content(path, "it is not a block of a recording"));
    }
    words.drain(..HEADER_WORDS);
    Ok(words)
}

fn read_words(path: &Path, most: usize) -> Result<Vec<u64>, FileError> {
    let mut bytes = vec![];
    let mut file = downbeat_files::open(path)?.take((most * size_of::<u64>()) as u64);
    file.read_to_end(&mut bytes).map_err(FileError::io(path))?;
    let words = bytes.as_chunks().0.iter();
    Ok(words.map(|word| u64::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::TemporaryFolder;

    const ID: BlockId = BlockId {
        process: 71,
        thread: 2,
        sequence: 3,
    };

    #[test]
    fn names_are_read_as_they_were_written() {
        assert_eq!(BlockId::from_file_name(&ID.file_name()), Some(ID));
        for other in [
            "71.2.block",
            "71.2.3.4.block",
            "a.2.3.block",
            "071.2.3.block",
            "block",
            "",
        ] {
            assert_eq!(BlockId::from_file_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_block_is_read_and_other_files_are_refused() {
        let mut bytes: Vec<u8> = ID
            .header(72)
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 9]);
        let (_folder, path) = TemporaryFolder::with_file("block", &bytes);
        assert_eq!(read_block(&path).unwrap(), [1]);
        for length in [0, 8, 63] {
            let (_folder, path) = TemporaryFolder::with_file("block", &bytes[..length]);
            assert!(read_block(&path).is_err());
        }
    }
}
