//! Folder of shared memory in which a rank leaves its blocks, and their collection into a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::FileError;

use crate::Definition;
use crate::block::{Block, BlockId, BlockState};
use crate::packed::pack;
use crate::rank_file::{ENDING, RankWriter};

/// Collects the blocks of a rank: of all processes that leave some in its folder.
#[derive(Debug)]
pub struct Collector {
    /// Folder of shared memory.
    spool: PathBuf,
    /// Folder of the files of all ranks.
    out: PathBuf,
    files: BTreeMap<u32, ProcessFile>,
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

impl Collector {
    /// Creates a collector of the blocks in the folder `spool`, which writes files to the folder `out`.
    pub fn new(spool: &Path, out: &Path) -> Self {
        Self {
            spool: spool.to_owned(),
            out: out.to_owned(),
            files: BTreeMap::new(),
        }
    }

    /// Lists the blocks.
    fn ids(&self) -> Result<Vec<BlockId>, FileError> {
        let entries = fs::read_dir(&self.spool).map_err(FileError::io(&self.spool))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names
            .filter_map(|name| BlockId::from_file_name(&name))
            .collect())
    }

    /// Reads the states of blocks, and returns both, those of a thread in their order.
    fn ordered(&self, ids: Vec<BlockId>) -> Vec<(BlockId, BlockState)> {
        let state = |id: BlockId| {
            // One that is just being created is empty.
            let state = BlockState::read(&self.spool.join(id.file_name())).ok()?;
            Some((id, state))
        };
        let mut blocks: Vec<_> = ids.into_iter().filter_map(state).collect();
        blocks.sort_unstable_by_key(|(id, state)| (id.process, id.thread, state.order));
        blocks
    }

    /// Collects the blocks that are full, if there are more than `most` blocks.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn collect_full(&mut self, most: usize) -> Result<(), FileError> {
        let ids = self.ids()?;
        // The states of all would be read at each look otherwise.
        if ids.len() <= most {
            return Ok(());
        }
        let blocks = self.ordered(ids).into_iter();
        for (id, _) in blocks.filter(|(_, state)| state.is_full) {
            self.take(id)?;
        }
        Ok(())
    }

    /// Collects all blocks, after the rank has ended, and removes the folder of shared memory. `ended` tells how it ended.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn finish(mut self, ended: &str) -> Result<Vec<Collected>, FileError> {
        for (id, state) in self.ordered(self.ids()?) {
            if state.order > 0 {
                self.take(id)?;
            }
        }
        let mut collected = vec![];
        for (process, file) in self.files {
            let bytes = file.writer.finish(ended)?;
            let name = match file.rank {
                Some(rank) => format!("rank-{rank}.{ENDING}"),
                None => format!("process-{process}.{ENDING}"),
            };
            let path = self.out.join(name);
            fs::rename(&file.path, &path).map_err(FileError::io(&path))?;
            let rank = file.rank;
            collected.push(Collected { path, rank, bytes });
        }
        // At the end: where there is no folder, others take the recording for complete.
        fs::remove_dir_all(&self.spool).map_err(FileError::io(&self.spool))?;
        Ok(collected)
    }

    fn take(&mut self, id: BlockId) -> Result<(), FileError> {
        let path = &self.spool.join(id.file_name());
        let block = Block::read(path)?;
        let packed = pack(block.words());
        let process = block.id.process;
        if !self.files.contains_key(&process) {
            // Nodes that share the folder may have processes with the same number.
            let node = self.spool.file_name().unwrap_or_default();
            let name = format!(".{}-{process}.{ENDING}.part", node.display());
            let path = self.out.join(name);
            let file = ProcessFile {
                writer: RankWriter::create(&path)?,
                path,
                rank: None,
            };
            self.files.insert(process, file);
        }
        if let Some(file) = self.files.get_mut(&process) {
            for line in packed.texts.lines() {
                if let Some(Definition::Process { rank, .. }) = Definition::parse(line) {
                    file.rank = Some(rank);
                }
            }
            file.writer.block(block.id.thread, &packed)?;
        }
        fs::remove_file(path).map_err(FileError::io(path))
    }
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
        let mut header = id.header();
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
        block(&spool, 0, 0, true, &words);
        block(&spool, 0, 1, false, &words);
        block(&spool, 1, 0, true, &words[..2]);
        collector.collect_full(3).unwrap();
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 3);
        collector.collect_full(2).unwrap();
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 1);
        block(&spool, 1, 1, false, &[0; 9]);

        let collected = collector.finish("exit code 0").unwrap();
        assert!(!spool.exists());
        assert_eq!((collected.len(), collected[0].rank), (1, Some(1)));
        assert_eq!(collected[0].path, folder.file("rank-1.dbrank"));
        assert_eq!(
            collected[0].bytes,
            fs::metadata(&collected[0].path).unwrap().len()
        );
        let file = RankFile::read(&collected[0].path).unwrap();
        let threads: Vec<u32> = file.blocks.iter().map(|block| block.thread).collect();
        assert_eq!(threads, [0, 1, 0]);
        assert_eq!(file.ended.as_deref(), Some("exit code 0"));
    }
}
