//! Folder of shared memory in which a rank leaves its blocks, and their collection into a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::FileError;

use crate::Definition;
use crate::block::{Block, BlockId, BlockState};
use crate::packed::{Packed, pack};
use crate::rank_file::{ENDING, RankWriter};
use crate::settings::{STOPPED, WAITING};

/// Collects the blocks of a rank: of all processes that leave some in its folders.
#[derive(Debug)]
pub struct Collector {
    /// Folder of shared memory, and the one for blocks in files.
    folders: [PathBuf; 2],
    /// Folder of the files of all ranks.
    out: PathBuf,
    files: BTreeMap<u32, ProcessFile>,
    /// Blocks that could not be written.
    lost: Option<Lost>,
}

/// A block, and the number of its folder.
#[derive(Clone, Copy, Debug)]
struct StoredBlock {
    folder: usize,
    id: BlockId,
}

/// File of one process.
#[derive(Debug)]
struct ProcessFile {
    writer: RankWriter,
    path: PathBuf,
    rank: Option<u32>,
}

/// File of a rank that was collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Path of the file.
    pub path: PathBuf,
    /// Rank; `None` if the process did not get through `MPI_Init`.
    pub rank: Option<u32>,
    /// Size of the file.
    pub bytes: u64,
}

/// Recording that was collected.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// Files, one for each process.
    pub files: Vec<Collected>,
    /// What is missing.
    pub lost: Option<Lost>,
}

/// Records that could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Lost {
    /// First error.
    pub why: FileError,
    /// Number of records.
    pub records: u64,
}

/// Returns the folder in which a rank keeps its blocks in files, for its folder of shared memory and the folder of the
/// files of all ranks.
pub fn folder_of_files(spool: &Path, out: &Path) -> PathBuf {
    // Nodes that share the folder may have processes with the same number.
    let name = spool.file_name().unwrap_or_default();
    out.join(format!(".{}.blocks", name.display()))
}

impl Collector {
    /// Creates a collector of the blocks in the folder `spool`, which writes files to the folder `out`.
    pub fn new(spool: &Path, out: &Path) -> Self {
        Self {
            folders: [spool.to_owned(), folder_of_files(spool, out)],
            out: out.to_owned(),
            files: BTreeMap::new(),
            lost: None,
        }
    }

    /// Lists the blocks, with the folder of each.
    fn blocks(&self) -> Result<Vec<StoredBlock>, FileError> {
        let mut found = vec![];
        for (folder, path) in self.folders.iter().enumerate() {
            let entries = match fs::read_dir(path) {
                // There is no block in a file.
                Err(_) if folder > 0 => continue,
                entries => entries.map_err(FileError::io(path))?,
            };
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let ids = names.filter_map(|name| BlockId::from_file_name(&name));
            found.extend(ids.map(|id| StoredBlock { folder, id }));
        }
        Ok(found)
    }

    /// Returns the path of a block.
    fn path(&self, block: StoredBlock) -> PathBuf {
        self.folders[block.folder].join(block.id.file_name())
    }

    /// Reads the states of blocks, and returns both, those of a thread in their order.
    fn ordered(&self) -> Result<Vec<(StoredBlock, BlockState)>, FileError> {
        let state = |block: StoredBlock| {
            // One that is just being created is empty.
            let state = BlockState::read(&self.path(block)).ok()?;
            Some((block, state))
        };
        let mut blocks: Vec<_> = self.blocks()?.into_iter().filter_map(state).collect();
        blocks.sort_unstable_by_key(|(StoredBlock { id, .. }, state)| {
            (id.process, id.thread, state.order)
        });
        Ok(blocks)
    }

    /// Collects the blocks that are full, if blocks have more than `most` bytes or the rank waits for memory. Returns true
    /// if it waited.
    ///
    /// When a file cannot be written, it tells the rank to wait no more, and collects no blocks until
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// If a block cannot be read.
    pub fn collect_full(&mut self, most: u64) -> Result<bool, FileError> {
        let waits = fs::remove_file(self.folders[0].join(WAITING)).is_ok();
        if self.lost.is_some() {
            return Ok(false);
        }
        // The states of all would be read at each look otherwise.
        let blocks = self.blocks()?;
        let size = |block| Some(fs::metadata(self.path(block)).ok()?.len());
        if !waits && blocks.into_iter().filter_map(size).sum::<u64>() <= most {
            return Ok(false);
        }
        let blocks = self.ordered()?.into_iter();
        for (block, _) in blocks.filter(|(_, state)| state.is_full) {
            if let Err(why) = self.take(block)? {
                let stopped = self.folders[0].join(STOPPED);
                fs::write(&stopped, b"").map_err(FileError::io(&stopped))?;
                self.lost = Some(Lost { why, records: 0 });
                break;
            }
        }
        Ok(waits)
    }

    /// Collects all blocks, after the rank has ended, and removes its folders. `ended` tells how it ended.
    ///
    /// # Errors
    /// If a block cannot be read, or a file not be named.
    pub fn finish(mut self, ended: &str) -> Result<Recorded, FileError> {
        // There may be space again.
        let mut lost = self.lost.take();
        for (block, state) in self.ordered()? {
            if state.order == 0 {
                continue;
            }
            if let Err(why) = self.take(block)? {
                let records = pack(Block::read(&self.path(block))?.words()).records;
                let lost = lost.get_or_insert(Lost { why, records: 0 });
                lost.records += records;
            }
        }
        let mut files = vec![];
        for (process, file) in self.files {
            let bytes = match file.writer.finish(ended) {
                Ok(bytes) => bytes,
                Err(why) => {
                    lost.get_or_insert(Lost { why, records: 0 });
                    fs::metadata(&file.path).map_or(0, |found| found.len())
                }
            };
            let name = match file.rank {
                Some(rank) => format!("rank-{rank}.{ENDING}"),
                None => format!("process-{process}.{ENDING}"),
            };
            let path = self.out.join(name);
            fs::rename(&file.path, &path).map_err(FileError::io(&path))?;
            let rank = file.rank;
            files.push(Collected { path, rank, bytes });
        }
        let [spool, in_files] = &self.folders;
        // Most ranks have no such folder.
        let _ = fs::remove_dir_all(in_files);
        // At the end: where there is no folder, others take the recording for complete.
        fs::remove_dir_all(spool).map_err(FileError::io(spool))?;
        let lost = lost.filter(|lost| lost.records > 0 || files.is_empty());
        Ok(Recorded { files, lost })
    }

    /// Writes a block to the file of its process, and removes it. The inner error is of writing.
    fn take(&mut self, block: StoredBlock) -> Result<Result<(), FileError>, FileError> {
        let path = &self.path(block);
        let block = Block::read(path)?;
        let packed = pack(block.words());
        if let Err(why) = self.write(&block, &packed) {
            return Ok(Err(why));
        }
        fs::remove_file(path).map_err(FileError::io(path))?;
        Ok(Ok(()))
    }

    fn write(&mut self, block: &Block, packed: &Packed) -> Result<(), FileError> {
        let process = block.id.process;
        if !self.files.contains_key(&process) {
            // Nodes that share the folder may have processes with the same number.
            let node = self.folders[0].file_name().unwrap_or_default();
            let name = format!(".{}-{process}.{ENDING}.part", node.display());
            let path = self.out.join(name);
            // A parent that was killed has left its file.
            let (writer, texts) = if path.exists() {
                let (writer, found) = RankWriter::resume(&path)?;
                (writer, found.texts)
            } else {
                (RankWriter::create(&path)?, String::new())
            };
            let rank = rank_in(&texts);
            let file = ProcessFile { writer, path, rank };
            self.files.insert(process, file);
        }
        if let Some(file) = self.files.get_mut(&process) {
            file.writer.block(block.id.thread, packed)?;
            file.rank = rank_in(&packed.texts).or(file.rank);
        }
        Ok(())
    }
}

/// Returns the rank that definitions tell.
fn rank_in(texts: &str) -> Option<u32> {
    texts
        .lines()
        .find_map(|line| match Definition::parse(line)? {
            Definition::Process { rank, .. } => Some(rank),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankFile;
    use crate::record::tests::{examples, written};
    use downbeat_files::testing::Folder;

    fn block(folder: &Path, thread: u32, sequence: u32, full: bool, words: &[u64]) {
        let id = BlockId {
            process: 12,
            thread,
            sequence,
        };
        let mut header = id.header(8 * (8 + words.len()));
        header[crate::block::FULL] = full.into();
        header[crate::block::ORDER] = u64::from(sequence) + 1;
        let all = header.iter().chain(words);
        let bytes: Vec<u8> = all.flat_map(|word| word.to_le_bytes()).collect();
        fs::write(folder.join(id.file_name()), bytes).unwrap();
    }

    #[test]
    fn blocks_become_the_file_of_a_rank() {
        let (folder, _) = Folder::with("other", b"");
        let spool = folder.file("spool");
        fs::create_dir(&spool).unwrap();
        let words = written(&examples());
        let mut collector = Collector::new(&spool, &folder.0);
        let in_files = folder_of_files(&spool, &folder.0);
        fs::create_dir(&in_files).unwrap();
        block(&spool, 0, 0, true, &words);
        block(&in_files, 0, 1, false, &words);
        block(&in_files, 1, 0, true, &words[..2]);
        let count = || [&spool, &in_files].map(|of| fs::read_dir(of).unwrap().count());
        assert!(!collector.collect_full(1 << 20).unwrap());
        assert_eq!(count(), [1, 2]);
        assert!(!collector.collect_full(200).unwrap());
        assert_eq!(count(), [0, 1]);
        block(&spool, 1, 1, true, &words[..2]);
        fs::write(spool.join(WAITING), b"").unwrap();
        assert!(collector.collect_full(1 << 20).unwrap());
        assert_eq!(count(), [0, 1]);
        block(&spool, 1, 2, false, &[0; 9]);

        let recorded = collector.finish("exit code 0").unwrap();
        assert!(!spool.exists() && !in_files.exists() && recorded.lost.is_none());
        let collected = recorded.files;
        assert_eq!((collected.len(), collected[0].rank), (1, Some(1)));
        assert_eq!(collected[0].path, folder.file("rank-1.dbrank"));
        assert_eq!(
            collected[0].bytes,
            fs::metadata(&collected[0].path).unwrap().len()
        );
        let file = RankFile::read(&collected[0].path).unwrap();
        let threads: Vec<u32> = file.blocks.iter().map(|block| block.thread).collect();
        assert_eq!(threads, [0, 1, 1, 0]);
        assert_eq!(file.ended.as_deref(), Some("exit code 0"));
    }

    #[test]
    fn what_a_killed_parent_has_written_is_continued() {
        let (folder, _) = Folder::with("other", b"");
        let spool = folder.file("spool");
        fs::create_dir(&spool).unwrap();
        let words = written(&examples());
        block(&spool, 0, 0, true, &words);
        Collector::new(&spool, &folder.0).collect_full(0).unwrap();
        // The definition of the rank is in the first block.
        block(&spool, 0, 1, false, &words[..2]);
        let recorded = Collector::new(&spool, &folder.0).finish("killed").unwrap();
        assert_eq!(recorded.files[0].rank, Some(1));
        let file = RankFile::read(&recorded.files[0].path).unwrap();
        assert_eq!(file.blocks.len(), 2);
    }

    #[test]
    fn what_cannot_be_written_is_kept_until_the_end() {
        let (folder, _) = Folder::with("other", b"");
        let [spool, out] = ["spool", "out"].map(|name| folder.file(name));
        fs::create_dir(&spool).unwrap();
        let words = written(&examples());
        for is_there_at_last in [true, false] {
            fs::create_dir_all(&spool).unwrap();
            let mut collector = Collector::new(&spool, &out);
            block(&spool, 0, 0, true, &words);
            collector.collect_full(0).unwrap();
            assert!(spool.join(STOPPED).exists());
            block(&spool, 0, 1, true, &words);
            collector.collect_full(0).unwrap();
            if is_there_at_last {
                fs::create_dir(&out).unwrap();
            }
            let recorded = collector.finish("exit code 0").unwrap();
            assert!(!spool.exists());
            let lost = recorded.lost.map(|lost| lost.records);
            let records = pack(&words).records;
            let expected = (!is_there_at_last).then_some(2 * records);
            assert_eq!(
                (recorded.files.len(), lost),
                (usize::from(is_there_at_last), expected)
            );
            let _ = fs::remove_dir_all(&out);
        }
    }
}
