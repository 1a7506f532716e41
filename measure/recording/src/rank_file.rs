//! File of one rank: its packed records, block by block, and its definitions.
//!
//! After eight bytes with format and version come chunks: a tag, numbers, the length of
//! the content, the content, and a CRC-32 of the chunk. The last one tells how the rank
//! ended.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use downbeat_files::varint::{self, write_varint};
use downbeat_files::{Crc32, FileError, Flaw};

use crate::packed::{PackedBlock, PackedRecords, PackedThread};

/// First bytes of a file: format and version.
const MAGIC: [u8; 8] = *b"dbrank\0\x01";

/// Ending of the names of files.
pub(crate) const ENDING: &str = "dbrank";

/// Words between the text of the end and the number of lost calls, and between that and
/// the reading of the counter since which calls are missing.
const LOST: &str = "; calls lost: ";
const SINCE: &str = "; missing since ";

/// Tags of chunks.
const BLOCK: u8 = 1;
const TEXTS: u8 = 2;
const END: u8 = 3;

/// Calls that a file of a rank lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingCalls {
    /// Number of calls that could not be written.
    pub(crate) lost: u64,
    /// Reading of the counter since which calls are missing: these, and those that the
    /// rank did not record.
    pub(crate) since: Option<u64>,
}

impl MissingCalls {
    /// Adds the beginning of a gap.
    pub(crate) fn begin_at(&mut self, since: Option<u64>) {
        self.since = [self.since, since].into_iter().flatten().min();
    }
}

/// Writer of the file of a rank.
#[derive(Debug)]
pub(crate) struct RankWriter {
    file: File,
    pub(crate) path: PathBuf,
    /// Length up to the last whole chunk.
    bytes: u64,
}

impl RankWriter {
    /// Creates a file, or goes on with one whose writer was killed, behind its last whole
    /// block. Returns what the file holds, too.
    ///
    /// # Errors
    /// If it cannot be read or written, or is damaged.
    pub(crate) fn open(path: &Path) -> Result<(Self, RankFile), FileError> {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(FileError::io(path))?;
        let length = file.metadata().map_err(FileError::io(path))?.len();
        let (path, bytes, mut found) = (path.to_owned(), 0, RankFile::default());
        let mut writer = Self { file, path, bytes };
        if length >= MAGIC.len() as u64 {
            found = RankFile::read(&writer.path)?;
            writer.bytes = found.whole;
        }
        writer.cut_off().map_err(FileError::io(&writer.path))?;
        if writer.bytes == 0
            && let Err(why) = writer.append(&MAGIC)
        {
            // Nobody can go on with it.
            let _ = std::fs::remove_file(&writer.path);
            return Err(why);
        }
        Ok((writer, found))
    }

    /// Writes the records and definitions of a block, or nothing.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write_block(&mut self, block: &PackedBlock) -> Result<(), FileError> {
        let mut chunks = vec![];
        if !block.texts.is_empty() {
            chunks = chunk(TEXTS, &[], block.texts.as_bytes());
        }
        for packed in block.threads.iter().filter(|packed| packed.records > 0) {
            let numbers = [packed.thread.into(), packed.records];
            chunks.extend(chunk(BLOCK, &numbers, &packed.bytes));
        }
        self.append(&chunks)
    }

    /// Writes how the rank ended and which calls are missing.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(&mut self, ended: &str, missing: MissingCalls) -> Result<(), FileError> {
        let text = match missing.since {
            None => ended.to_owned(),
            Some(since) => format!("{ended}{LOST}{}{SINCE}{since}", missing.lost),
        };
        self.append(&chunk(END, &[], text.as_bytes()))
    }

    /// Appends whole chunks, or nothing.
    fn append(&mut self, chunks: &[u8]) -> Result<(), FileError> {
        if let Err(why) = self.file.write_all(chunks) {
            // What follows the last whole chunk is not read.
            let _ = self.cut_off();
            return Err(FileError::io(&self.path)(why));
        }
        self.bytes += chunks.len() as u64;
        Ok(())
    }

    /// Removes what follows the last whole chunk.
    fn cut_off(&mut self) -> io::Result<()> {
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::Start(self.bytes)).map(drop)
    }
}

/// Returns the bytes of a chunk.
fn chunk(tag: u8, numbers: &[u64], content: &[u8]) -> Vec<u8> {
    let mut chunk = vec![tag];
    for number in numbers.iter().copied().chain([content.len() as u64]) {
        write_varint(&mut chunk, number);
    }
    chunk.extend(content);
    let sum = Crc32::of_bytes(&chunk);
    chunk.extend(sum.to_le_bytes());
    chunk
}

/// Contents of the file of a rank, apart from its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RankFile {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Definitions, one on each line.
    pub(crate) texts: String,
    /// Blocks in the order of the file: those of a thread are in order.
    pub(crate) blocks: Vec<BlockPlace>,
    /// End of the rank; `None` if the file has no end.
    pub(crate) ended: Option<String>,
    /// Calls that are missing.
    pub(crate) missing: MissingCalls,
    /// Number of bytes up to the last whole chunk before the end.
    whole: u64,
}

/// Packed block in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    /// Thread of the records.
    pub(crate) thread: u32,
    /// Number of records.
    pub(crate) records: u64,
    /// Offset of the chunk.
    begin: u64,
    /// Offset of the packed records in the chunk, and their length.
    head: usize,
    length: usize,
}

const WRONG_CHECKSUM: &str = "what begins here is damaged: its checksum is wrong";

impl RankFile {
    /// Reads everything but the records. A file that was cut off is read up to its last
    /// whole chunk.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        let file = downbeat_files::open(path)?;
        let length = file.metadata().map_err(FileError::io(path))?.len();
        let mut reader = BufReader::new(file);
        let mut magic = [0; MAGIC.len()];
        if reader.read_exact(&mut magic).is_err() || magic[..7] != MAGIC[..7] {
            let why = "it is not the recording of a rank";
            return Err(FileError::content(path, why));
        }
        if magic != MAGIC {
            let why = format!("its version {} is unknown", magic[7]);
            return Err(FileError::content(path, why));
        }
        let mut found = Self {
            path: path.to_owned(),
            whole: MAGIC.len() as u64,
            ..Self::default()
        };
        while found.ended.is_none() {
            match found.read_chunk(&mut reader, length) {
                Ok(()) => {}
                Err(Flaw::Io(why)) if why.kind() == ErrorKind::UnexpectedEof => break,
                Err(why) => return Err(why.in_file(path)),
            }
        }
        Ok(found)
    }

    /// Reads the chunk behind the last whole one of a file of this length.
    ///
    /// # Errors
    /// If it is damaged; [`ErrorKind::UnexpectedEof`] if the file is cut off in it.
    fn read_chunk(&mut self, reader: &mut BufReader<File>, length: u64) -> Result<(), Flaw> {
        let (begin, mut chunk) = (self.whole, vec![]);
        let wrong = |why: String| Flaw::Byte(begin, why);
        let mut next_byte = || {
            let mut byte = [0];
            reader.read_exact(&mut byte)?;
            chunk.push(byte[0]);
            Ok::<_, Flaw>(byte[0])
        };
        let tag = next_byte()?;
        if !(BLOCK..=END).contains(&tag) {
            return Err(wrong(format!("nothing begins with a byte {tag}")));
        }
        let mut next_number = || {
            let number = varint::read(&mut next_byte)?;
            number.ok_or_else(|| wrong("a number is too long".to_owned()))
        };
        let [thread, records] = match tag {
            BLOCK => [next_number()?, next_number()?],
            _ => [0; 2],
        };
        let content = next_number()?;
        let head = chunk.len();
        let end = content.saturating_add(begin + head as u64 + 4);
        if end > length {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        let content = content as usize;
        if tag == BLOCK {
            // The checksum is compared when the records are read.
            reader.seek_relative(content as i64 + 4)?;
            let thread = u32::try_from(thread);
            let thread = thread.map_err(|_| wrong("a thread has no such number".to_owned()))?;
            self.blocks.push(BlockPlace {
                thread,
                records,
                begin,
                head,
                length: content,
            });
        } else {
            chunk.resize(head + content + 4, 0);
            reader.read_exact(&mut chunk[head..])?;
            let text = String::from_utf8_lossy(&checked(&chunk, begin)?[head..]);
            if tag == END {
                let (ended, missing) = text.split_once(LOST).unwrap_or((&text, ""));
                self.ended = Some(ended.to_owned());
                if let Some((lost, since)) = missing.split_once(SINCE) {
                    self.missing.lost = lost.parse().unwrap_or(0);
                    self.missing.since = since.parse().ok();
                }
                return Ok(());
            }
            self.texts.push_str(&text);
        }
        self.whole = end;
        Ok(())
    }

    /// Returns true if the last block of a thread in the file holds these records: its
    /// writer was killed before it removed the block.
    pub(crate) fn ends_with(&self, packed: &PackedThread) -> bool {
        let mut blocks = self.blocks.iter().rev();
        let last = blocks.find(|block| block.thread == packed.thread);
        let records = last.map(|place| self.read_block(*place));
        records.is_some_and(|found| found.is_ok_and(|found| found.bytes == packed.bytes))
    }

    /// Reads the records of a block.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub(crate) fn read_block(&self, place: BlockPlace) -> Result<PackedRecords, FileError> {
        // It is not held open: the files of thousands of ranks are more than a process
        // may have.
        let mut file = downbeat_files::open(&self.path)?;
        let mut chunk = vec![0; place.head + place.length + 4];
        let read = file.seek(SeekFrom::Start(place.begin));
        let read = read.and_then(|_| file.read_exact(&mut chunk));
        read.map_err(FileError::io(&self.path))?;
        let content = checked(&chunk, place.begin).map_err(|flaw| flaw.in_file(&self.path))?;
        let offset = place.begin + place.head as u64;
        Ok(PackedRecords::new(content[place.head..].to_vec(), offset))
    }
}

/// Returns a chunk at this offset without its checksum, if that is right.
fn checked(chunk: &[u8], offset: u64) -> Result<&[u8], Flaw> {
    match chunk.split_last_chunk() {
        Some((content, sum)) if Crc32::of_bytes(content).to_le_bytes() == *sum => Ok(content),
        _ => Err(Flaw::Byte(offset, WRONG_CHECKSUM.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use crate::packed::tests::pack_one;
    use crate::record::tests::{example_words, examples};
    use downbeat_files::testing::{TemporaryFolder, is_noticed};

    fn example(path: &Path) -> Vec<Record> {
        let words = example_words();
        let (mut writer, _) = RankWriter::open(path).unwrap();
        writer.write_block(&pack_one(&words)).unwrap();
        writer.write_block(&short(2)).unwrap();
        writer.finish("exit code 3", MISSING).unwrap();
        examples()
    }

    /// Returns the first record, packed, as one of this thread.
    fn short(thread: u32) -> PackedBlock {
        PackedBlock::pack(thread, &example_words()[..2])
    }

    const MISSING: MissingCalls = MissingCalls {
        lost: 7,
        since: Some(5_000),
    };

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let (_folder, path) = TemporaryFolder::with_file("rank", b"");
        let records = example(&path);
        let file = RankFile::read(&path).unwrap();
        assert_eq!(file.ended.as_deref(), Some("exit code 3"));
        assert_eq!(file.missing, MISSING);
        assert_eq!(file.texts, "process 1 2 häuschen\n\n");
        assert_eq!([0, 1].map(|index| file.blocks[index].thread), [0, 2]);
        assert_eq!(file.blocks.len(), 2);
        let mut found = file.read_block(file.blocks[1]).unwrap();
        assert_eq!(found.next_record().unwrap(), Some(records[0]));
        assert_eq!(found.next_record().unwrap(), None);
    }

    #[test]
    fn a_file_that_is_cut_off_is_read_up_to_there() {
        let (folder, path) = TemporaryFolder::with_file("rank", b"");
        example(&path);
        let bytes = std::fs::read(&path).unwrap();
        let cut = folder.file("cut");
        for length in 8..bytes.len() {
            std::fs::write(&cut, &bytes[..length]).unwrap();
            let file = RankFile::read(&cut).unwrap();
            assert_eq!(file.ended, None, "{length} of {}", bytes.len());
        }
    }

    #[test]
    fn a_file_whose_writer_was_killed_is_continued() {
        let (folder, path) = TemporaryFolder::with_file("rank", b"");
        example(&path);
        let whole = std::fs::read(&path).unwrap();
        let cut = folder.file("cut");
        for length in 0..whole.len() {
            std::fs::write(&cut, &whole[..length]).unwrap();
            let (mut writer, before) = RankWriter::open(&cut).unwrap();
            writer.write_block(&short(5)).unwrap();
            writer
                .finish("its parent was killed", MissingCalls::default())
                .unwrap();
            let file = RankFile::read(&cut).unwrap();
            let (last, others) = file.blocks.split_last().unwrap();
            assert_eq!((last.thread, others), (5, &before.blocks[..]));
            assert_eq!(file.ended.as_deref(), Some("its parent was killed"));
        }
    }

    #[test]
    fn damage_is_noticed() {
        let (folder, path) = TemporaryFolder::with_file("rank", b"");
        example(&path);
        let damaged = folder.file("damaged");
        is_noticed(&std::fs::read(&path).unwrap(), |bytes| {
            std::fs::write(&damaged, bytes).unwrap();
            let Ok(file) = RankFile::read(&damaged) else {
                return true;
            };
            let mut blocks = file.blocks.iter();
            file.ended.is_none() || blocks.any(|block| file.read_block(*block).is_err())
        });
    }
}
