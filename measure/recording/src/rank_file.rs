//! File of one rank: its packed records, block by block, and its definitions.
//!
//! After eight bytes with format and version come chunks: a tag, numbers, the length of the content, the content, and a CRC-32 of the
//! chunk. The last one tells how the rank ended.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use downbeat_files::varint::{self, put};
use downbeat_files::{Crc32, FileError, Flaw};

use crate::packed::{Packed, unpack};

/// First bytes of a file: format and version. Version 1 has no accesses.
const MAGIC: [u8; 8] = *b"dbrank\0\x02";

/// Ending of the names of files.
pub const ENDING: &str = "dbrank";

/// Words between the text of the end and the number of lost calls, and between that and the
/// reading of the counter since which calls are missing.
const LOST: &str = "; calls lost: ";
const SINCE: &str = "; missing since ";

mod tag {
    pub(super) const BLOCK: u8 = 1;
    pub(super) const TEXTS: u8 = 2;
    pub(super) const END: u8 = 3;
}

/// Calls that a file of a rank lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingCalls {
    /// Number of calls that could not be written.
    pub lost: u64,
    /// Reading of the counter since which calls are missing: these, and those that the rank
    /// did not record.
    pub since: Option<u64>,
}

impl MissingCalls {
    /// Adds the beginning of a gap.
    pub(crate) fn begin_at(&mut self, since: Option<u64>) {
        self.since = [self.since, since].into_iter().flatten().min();
    }
}

/// Writes the file of a rank.
#[derive(Debug)]
pub struct RankWriter {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl RankWriter {
    /// Creates a file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let file = File::create(path).map_err(FileError::io(path))?;
        let mut writer = Self {
            file,
            path: path.to_owned(),
            bytes: 0,
        };
        let begun = writer.put(&MAGIC);
        if begun.is_err() {
            // Nobody can go on with it.
            let _ = std::fs::remove_file(path);
        }
        begun.map(|()| writer)
    }

    /// Goes on with a file whose writer was killed, behind its last whole block, and
    /// returns what it holds.
    ///
    /// # Errors
    /// If it cannot be read or written, or is damaged.
    pub fn resume(path: &Path) -> Result<(Self, RankFile), FileError> {
        let length = std::fs::metadata(path).map_err(FileError::io(path))?.len();
        if length < MAGIC.len() as u64 {
            Self::create(path)?;
        }
        let found = RankFile::read(path)?;
        let file = File::options().write(true).open(path);
        let mut file = file.map_err(FileError::io(path))?;
        let cut = file.set_len(found.whole);
        cut.and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(FileError::io(path))?;
        let writer = Self {
            file,
            path: path.to_owned(),
            bytes: found.whole,
        };
        Ok((writer, found))
    }

    /// Writes the records of a block, by threads. After an error the file ends with the block
    /// before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn block(&mut self, records: &[(u32, Packed)]) -> Result<(), FileError> {
        let before = self.bytes;
        let mut records = records.iter();
        let written = records.try_for_each(|(thread, packed)| self.chunks(*thread, packed));
        if written.is_err() {
            // What follows the last whole chunk is not read.
            let _ = self.file.set_len(before);
            let _ = self.file.seek(SeekFrom::Start(before));
            self.bytes = before;
        }
        written
    }

    fn chunks(&mut self, thread: u32, packed: &Packed) -> Result<(), FileError> {
        if !packed.texts.is_empty() {
            self.chunk(tag::TEXTS, &[], packed.texts.as_bytes())?;
        }
        if packed.records == 0 {
            return Ok(());
        }
        let numbers = [thread.into(), packed.records];
        self.chunk(tag::BLOCK, &numbers, &packed.bytes)
    }

    /// Writes how the rank ended and which calls are missing, and returns the number of
    /// bytes of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, ended: &str, missing: MissingCalls) -> Result<u64, FileError> {
        let text = match missing.since {
            None => ended.to_owned(),
            Some(since) => format!("{ended}{LOST}{}{SINCE}{since}", missing.lost),
        };
        self.chunk(tag::END, &[], text.as_bytes())?;
        Ok(self.bytes)
    }

    fn chunk(&mut self, tag: u8, numbers: &[u64], content: &[u8]) -> Result<(), FileError> {
        let mut chunk = vec![tag];
        for number in numbers {
            put(&mut chunk, *number);
        }
        put(&mut chunk, content.len() as u64);
        chunk.extend(content);
        let sum = Crc32::of(&chunk);
        chunk.extend(sum.to_le_bytes());
        self.put(&chunk)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.bytes += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.map_err(FileError::io(&self.path))
    }
}

/// Contents of the file of a rank, apart from its records.
#[derive(Clone, Debug)]
pub struct RankFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Definitions, one on each line.
    pub texts: String,
    /// Blocks in the order of the file: those of a thread are in order.
    pub blocks: Vec<BlockPlace>,
    /// End of the rank; `None` if the file has no end.
    pub ended: Option<String>,
    /// Calls that are missing.
    pub missing: MissingCalls,
    /// Number of bytes up to the last whole chunk before the end.
    whole: u64,
}

/// Packed block in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Thread of the records.
    pub thread: u32,
    /// Number of records.
    pub records: u64,
    /// Offset of its packed records in the file.
    offset: u64,
    length: u64,
    /// Offset of the whole chunk.
    begin: u64,
}

impl RankFile {
    /// Reads everything but the records. A file that was cut off is read up to its last whole chunk.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let file = downbeat_files::open(path)?;
        let length = file.metadata().map_err(FileError::io(path))?.len();
        let mut found = Self {
            path: path.to_owned(),
            texts: String::new(),
            blocks: vec![],
            ended: None,
            missing: MissingCalls::default(),
            whole: MAGIC.len() as u64,
        };
        let mut input = Chunks {
            reader: BufReader::new(file),
            path,
            at: 0,
            length,
        };
        let mut magic = [0; MAGIC.len()];
        if input.fill(&mut magic)?.is_none() || magic[..7] != MAGIC[..7] {
            let why = "it is not the recording of a rank";
            return Err(FileError::content(path, why));
        }
        if !(1..=MAGIC[7]).contains(&magic[7]) {
            let why = format!("its version {} is unknown", magic[7]);
            return Err(FileError::content(path, why));
        }
        while found.ended.is_none() && found.chunk(&mut input)?.is_some() {
            if found.ended.is_none() {
                found.whole = input.at;
            }
        }
        Ok(found)
    }

    /// Reads a chunk; `None` where the file is cut off.
    fn chunk(&mut self, input: &mut Chunks<'_>) -> Result<Option<()>, FileError> {
        let begin = input.at;
        let Some(tag) = input.byte()? else {
            return Ok(None);
        };
        let mut numbers = [0; 2];
        if tag == tag::BLOCK {
            for number in &mut numbers {
                match input.number()? {
                    Some(found) => *number = found,
                    None => return Ok(None),
                }
            }
        }
        let Some(length) = input.number()? else {
            return Ok(None);
        };
        let offset = input.at;
        if !(tag::BLOCK..=tag::END).contains(&tag) {
            let flaw = Flaw::Byte(begin, format!("nothing begins with a byte {tag}"));
            return Err(flaw.in_file(&self.path));
        }
        if tag == tag::BLOCK {
            // The checksum is compared when the records are read.
            if input.skip(length.saturating_add(4))?.is_none() {
                return Ok(None);
            }
            let thread = u32::try_from(numbers[0])
                .map_err(|_| Flaw::Byte(begin, "a thread has no such number".to_owned()))
                .map_err(|flaw| flaw.in_file(&self.path))?;
            self.blocks.push(BlockPlace {
                thread,
                records: numbers[1],
                offset,
                length,
                begin,
            });
            return Ok(Some(()));
        }
        if length > input.length.saturating_sub(offset) {
            return Ok(None);
        }
        let mut chunk = vec![tag];
        put(&mut chunk, length);
        let head = chunk.len();
        chunk.resize(head + length as usize, 0);
        let mut sum = [0; 4];
        if input.fill(&mut chunk[head..])?.is_none() || input.fill(&mut sum)?.is_none() {
            return Ok(None);
        }
        if Crc32::of(&chunk) != u32::from_le_bytes(sum) {
            return Err(Flaw::Byte(begin, WRONG.to_owned()).in_file(&self.path));
        }
        let text = String::from_utf8_lossy(&chunk[head..]);
        match tag {
            tag::TEXTS => self.texts.push_str(&text),
            _ => {
                let (ended, missing) = text.split_once(LOST).unwrap_or((&text, ""));
                self.ended = Some(ended.to_owned());
                if let Some((lost, since)) = missing.split_once(SINCE) {
                    self.missing.lost = lost.parse().unwrap_or(0);
                    self.missing.since = since.parse().ok();
                }
            }
        }
        Ok(Some(()))
    }

    /// Returns the threads that have records, in their order.
    pub fn threads(&self) -> BTreeSet<u32> {
        self.blocks.iter().map(|block| block.thread).collect()
    }

    /// Returns true if the last block of a thread in the file holds these records: its
    /// writer was killed before it removed the block.
    pub fn ends_with(&self, thread: u32, packed: &Packed) -> bool {
        let last = self.blocks.iter().rfind(|block| block.thread == thread);
        let content = |block: &BlockPlace| {
            let mut file = downbeat_files::open(&self.path).ok()?;
            let mut content = vec![0; packed.bytes.len()];
            file.seek(SeekFrom::Start(block.offset)).ok()?;
            file.read_exact(&mut content).ok()?;
            Some(content)
        };
        let is_as_long =
            |block: &&BlockPlace| block.length == packed.bytes.len() as u64 && block.length > 0;
        last.filter(is_as_long).and_then(content).as_ref() == Some(&packed.bytes)
    }

    /// Puts the words of a block's records into `words`.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub fn records(&self, place: BlockPlace, words: &mut Vec<u64>) -> Result<(), FileError> {
        // It is not held open: that of each of thousands of ranks would be more than a process may have.
        let mut file = downbeat_files::open(&self.path)?;
        let head = (place.offset - place.begin) as usize;
        let mut chunk = vec![0; head + place.length as usize + 4];
        file.seek(SeekFrom::Start(place.begin))
            .and_then(|_| file.read_exact(&mut chunk))
            .map_err(FileError::io(&self.path))?;
        let (content, sum) = chunk.split_at(chunk.len() - 4);
        if Crc32::of(content).to_le_bytes() != sum {
            return Err(Flaw::Byte(place.begin, WRONG.to_owned()).in_file(&self.path));
        }
        unpack(&content[head..], place.offset, words).map_err(|flaw| flaw.in_file(&self.path))
    }
}

const WRONG: &str = "what begins here is damaged: its checksum is wrong";

/// File that is read chunk by chunk.
struct Chunks<'a> {
    reader: BufReader<File>,
    path: &'a Path,
    at: u64,
    length: u64,
}

impl Chunks<'_> {
    /// Fills the buffer; `None` if the file is shorter.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<Option<()>, FileError> {
        if buffer.len() as u64 > self.length - self.at {
            return Ok(None);
        }
        let read = self.reader.read_exact(buffer);
        read.map_err(FileError::io(self.path))?;
        self.at += buffer.len() as u64;
        Ok(Some(()))
    }

    fn byte(&mut self) -> Result<Option<u8>, FileError> {
        let mut byte = [0];
        Ok(self.fill(&mut byte)?.map(|()| byte[0]))
    }

    /// Reads a number; `None` where the file is cut off.
    fn number(&mut self) -> Result<Option<u64>, FileError> {
        let begin = self.at;
        // The error is none where the file is cut off.
        match varint::read(|| self.byte().map_err(Some)?.ok_or(None)) {
            Ok(Some(number)) if number >> 63 == 0 => Ok(Some(number)),
            Ok(_) => Err(Flaw::Byte(begin, "a number is too long".to_owned()).in_file(self.path)),
            Err(None) => Ok(None),
            Err(Some(why)) => Err(why),
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<Option<()>, FileError> {
        if bytes > self.length - self.at {
            return Ok(None);
        }
        let skipped = self.reader.seek_relative(bytes as i64);
        skipped.map_err(FileError::io(self.path))?;
        self.at += bytes;
        Ok(Some(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::pack;
    use crate::record::tests::{examples, written};
    use downbeat_files::testing::{Folder, is_noticed};

    fn example(path: &Path) -> Vec<u64> {
        let words = written(&examples());
        let mut writer = RankWriter::create(path).unwrap();
        writer.block(&[(0, pack(&words))]).unwrap();
        writer.block(&[(2, pack(&words[..2]))]).unwrap();
        writer.finish("exit code 3", MISSING).unwrap();
        words
    }

    const MISSING: MissingCalls = MissingCalls {
        lost: 7,
        since: Some(5_000),
    };

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let (_folder, path) = Folder::with("rank", b"");
        let words = example(&path);
        let file = RankFile::read(&path).unwrap();
        assert_eq!(file.ended.as_deref(), Some("exit code 3"));
        assert_eq!(file.missing, MISSING);
        assert_eq!(file.texts, "process 1 2 häuschen\n\n");
        assert_eq!(file.threads(), BTreeSet::from([0, 2]));
        assert_eq!(file.blocks.len(), 2);
        let mut found = vec![];
        file.records(file.blocks[1], &mut found).unwrap();
        assert_eq!(found, words[..2]);
    }

    #[test]
    fn a_file_that_is_cut_off_is_read_up_to_there() {
        let (folder, path) = Folder::with("rank", b"");
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
        let (folder, path) = Folder::with("rank", b"");
        let words = example(&path);
        let whole = std::fs::read(&path).unwrap();
        let cut = folder.file("cut");
        for length in 0..whole.len() {
            std::fs::write(&cut, &whole[..length]).unwrap();
            let (mut writer, before) = RankWriter::resume(&cut).unwrap();
            writer.block(&[(5, pack(&words[..2]))]).unwrap();
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
        let (folder, path) = Folder::with("rank", b"");
        example(&path);
        let damaged = folder.file("damaged");
        is_noticed(&std::fs::read(&path).unwrap(), |bytes| {
            std::fs::write(&damaged, bytes).unwrap();
            let Ok(file) = RankFile::read(&damaged) else {
                return true;
            };
            let mut words = vec![];
            let mut blocks = file.blocks.iter();
            file.ended.is_none() || blocks.any(|block| file.records(*block, &mut words).is_err())
        });
    }
}
