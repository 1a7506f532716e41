//! Blocks of shared memory, to which one thread of a rank writes its records; when it has
//! ended, another may go on in its last block.
//!
//! A block is a file on tmpfs: it survives whatever ends the rank. Records follow a header of eight words.

use std::io::Read as _;
use std::path::Path;

use downbeat_files::FileError;

/// First word of a block: format and version.
const MAGIC: u64 = u64::from_le_bytes(*b"dbblock2");

/// Number of words of the header.
pub const HEADER_WORDS: usize = 8;

/// Index of the word of the header that is the number among the blocks of the thread.
pub const SEQUENCE: usize = 3;

/// Index of the word of the header that is 1 when no thread writes to the block any more.
pub const FULL: usize = 4;

/// Index of the word of the header that is the order of the block among those of its thread, from 1; 0 if nothing was written to it.
pub const ORDER: usize = 5;

/// Index of the word of the header that is the size of the block in bytes.
pub const SIZE: usize = 6;

/// Least size of a block in bytes. Blocks of a thread grow: a program with many threads may have many that make few calls.
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
    /// Number among the blocks of the thread: blocks that are prepared ahead need not be used in this order.
    pub sequence: u32,
}

impl BlockId {
    /// Returns the header of a block of this size.
    pub const fn header(self, bytes: usize) -> [u64; HEADER_WORDS] {
        let Self {
            process,
            thread,
            sequence,
        } = self;
        [
            MAGIC,
            process as u64,
            thread as u64,
            sequence as u64,
            0,
            0,
            bytes as u64,
            0,
        ]
    }

    /// Returns the name of the file.
    pub fn file_name(self) -> String {
        format!(
            "{}.{}.{}.{ENDING}",
            self.process, self.thread, self.sequence
        )
    }

    /// Returns the block that has this file name; `None` if it is none of a block.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(ENDING)?.strip_suffix('.')?.split('.');
        let mut next = || parts.next()?.parse().ok();
        let id = Self {
            process: next()?,
            thread: next()?,
            sequence: next()?,
        };
        (id.file_name() == name).then_some(id)
    }
}

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockState {
    /// True if no thread writes to it any more.
    pub is_full: bool,
    /// Order among the blocks of the thread; 0 if nothing was written to it.
    pub order: u64,
}

impl BlockState {
    /// Reads the state of the block in a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut header = [0; HEADER_WORDS * size_of::<u64>()];
        let mut file = downbeat_files::open(path)?;
        file.read_exact(&mut header).map_err(FileError::io(path))?;
        let words: [u64; HEADER_WORDS] = core::array::from_fn(|index| {
            header
                .as_chunks()
                .0
                .get(index)
                .map_or(0, |word| u64::from_le_bytes(*word))
        });
        Ok(Self {
            is_full: words[FULL] == 1,
            order: words[ORDER],
        })
    }
}

/// A block, read from its file.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its identity.
    pub id: BlockId,
    words: Vec<u64>,
}

impl Block {
    /// Reads a block.
    ///
    /// # Errors
    /// If the file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let bytes = downbeat_files::read(path)?;
        let words: Vec<u64> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        match words[..] {
            [MAGIC, process, thread, sequence, _, _, _, _, ..] => Ok(Self {
                id: BlockId {
                    process: process as u32,
                    thread: thread as u32,
                    sequence: sequence as u32,
                },
                words,
            }),
            _ => Err(FileError::content(path, "it is not a block of a recording")),
        }
    }

    /// Returns the words of the records, and those after them.
    pub fn words(&self) -> &[u64] {
        &self.words[HEADER_WORDS..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::Folder;

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
        let (_folder, path) = Folder::with("block", &bytes);
        let block = Block::read(&path).unwrap();
        assert_eq!((block.id, block.words()), (ID, &[1][..]));
        for length in [0, 8, 63] {
            let (_folder, path) = Folder::with("block", &bytes[..length]);
            assert!(Block::read(&path).is_err());
        }
    }
}
