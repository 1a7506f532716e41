//! Folder of shared memory in which a rank leaves its blocks, and their collection into a file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::FileError;

use crate::Definition;
use crate::block::{Block, BlockId, BlockState};
use crate::packed::{Packed, pack_block};
use crate::rank_file::{ENDING, MissingCalls, RankFile, RankWriter};
use crate::settings::{STOPPED, WAITING};

/// Collects the blocks of a rank: of all processes that leave some in its folders.
#[derive(Debug)]
pub struct Collector {
    /// Folder of shared memory, and the one for blocks in files.
    folders: [PathBuf; 2],
    /// Folder of the files of all ranks.
    out: PathBuf,
    files: BTreeMap<u32, ProcessFile>,
    /// Records that could not be read or written.
    lost: Option<Lost>,
    /// True if no block is collected before the end.
    is_stopped: bool,
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
    /// Contents of the file of a parent that was killed.
    before: Option<RankFile>,
    /// True if the definitions in all blocks are written.
    is_defined: bool,
    missing: MissingCalls,
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

/// Records that could not be written at the end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Lost {
    /// First error.
    pub why: FileError,
    /// Number of records that could not be written at the end.
    pub records: u64,
    /// Number of calls that these stand for.
    pub calls: u64,
    /// Reading of the counter in the first of these records.
    since: Option<u64>,
}

impl Lost {
    /// Nothing yet, for this reason.
    const fn new(why: FileError) -> Self {
        Self {
            why,
            records: 0,
            calls: 0,
            since: None,
        }
    }
}

/// Files whose space is kept for the time when the disk is full: for definitions, and for the
/// ends of files.
const RESERVES: [(&str, usize); 2] = [("definitions", 1 << 18), ("end", 1 << 12)];

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
            is_stopped: false,
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

    /// Reads the state of a block; `None` if it is just being created.
    fn state(&self, block: StoredBlock) -> Option<BlockState> {
        BlockState::read(&self.path(block)).ok()
    }

    /// Collects the blocks that are full, if blocks have more than `most` bytes or the rank waits for memory. Returns true
    /// if it waited.
    ///
    /// When a file cannot be written, it tells the rank to wait no more, and collects no blocks until
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn collect_full(&mut self, most: u64) -> Result<bool, FileError> {
        let waits = fs::remove_file(self.folders[0].join(WAITING)).is_ok();
        if self.is_stopped {
            return Ok(false);
        }
        // The states of all would be read at each look otherwise.
        let blocks = self.blocks()?;
        let size = |block| Some(fs::metadata(self.path(block)).ok()?.len());
        if !waits && blocks.into_iter().filter_map(size).sum::<u64>() <= most {
            return Ok(false);
        }
        let state = |block: &StoredBlock| self.state(*block).filter(|state| state.is_full);
        let blocks: Vec<_> = in_order(find_full(self.blocks()?, state)).collect();
        if self.files.is_empty() && !blocks.is_empty() {
            for (index, (_, bytes)) in RESERVES.into_iter().enumerate() {
                // Without it, less of the end can be written.
                let _ = fs::write(self.reserve(index), vec![0; bytes]);
            }
        }
        for block in blocks {
            if let Err(Lost { why, .. }) = self.take(block) {
                self.add_lost(Lost::new(why));
                self.is_stopped = true;
                let stopped = self.folders[0].join(STOPPED);
                fs::write(&stopped, b"").map_err(FileError::io(&stopped))?;
                break;
            }
        }
        Ok(waits)
    }

    /// Keeps the first reason why records are missing, and counts them.
    fn add_lost(&mut self, of: Lost) {
        let (records, calls) = (of.records, of.calls);
        let lost = self.lost.get_or_insert(Lost::new(of.why));
        lost.records += records;
        lost.calls += calls;
    }

    /// Collects all blocks, after the rank has ended, and removes its folders. `ended` tells how it ended.
    ///
    /// # Errors
    /// If a folder cannot be read or removed, or a file not be named.
    pub fn finish(mut self, ended: &str) -> Result<Recorded, FileError> {
        self.take_all()?;
        self.name_files(ended)
    }

    /// Does the same for a rank whose parent was killed; what cannot be written stays
    /// where it is.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn salvage(mut self) -> Result<Recorded, FileError> {
        self.take_all()?;
        match self.lost.take() {
            Some(lost) if lost.records > 0 => Ok(Recorded {
                files: vec![],
                lost: Some(lost),
            }),
            lost => {
                self.lost = lost;
                self.name_files("its parent was killed")
            }
        }
    }

    fn take_all(&mut self) -> Result<(), FileError> {
        self.adopt_files();
        // There may be space again.
        let blocks = self.blocks()?.into_iter();
        let states = blocks.filter_map(|block| Some((block, self.state(block)?)));
        let states = states.filter(|(_, state)| state.order > 0).collect();
        let blocks: Vec<_> = in_order(states).collect();
        // Usually there is none.
        let _ = fs::remove_file(self.reserve(0));
        self.write_definitions(&blocks);
        for block in blocks {
            if let Err(lost) = self.take(block) {
                if let Some(file) = self.files.get_mut(&block.id.process) {
                    file.missing.lost += lost.calls;
                    file.missing.begin_at(lost.since);
                }
                self.add_lost(lost);
            }
        }
        let _ = fs::remove_file(self.reserve(1));
        Ok(())
    }

    /// Returns the path of a file whose space is kept.
    fn reserve(&self, index: usize) -> PathBuf {
        let (purpose, _) = RESERVES[index];
        self.out.join(format!("{}{purpose}", self.name_of_parts()))
    }

    /// Writes the definitions in these blocks: without them, no record can be read.
    fn write_definitions(&mut self, blocks: &[StoredBlock]) {
        let mut texts: BTreeMap<u32, String> = BTreeMap::new();
        for block in blocks {
            // One that cannot be read is set aside later.
            let Ok(block) = Block::read(&self.path(*block)) else {
                continue;
            };
            let file = self.files.get(&block.id.process);
            let before = file.and_then(|file| file.before.as_ref());
            let known = before.map_or("", |before| before.texts.as_str());
            let found = pack_block(&block)
                .into_iter()
                .map(|(_, packed)| packed.texts);
            let of = texts.entry(block.id.process).or_default();
            of.extend(found.filter(|texts| !known.contains(texts.as_str())));
        }
        for (process, texts) in texts {
            let definitions = Packed {
                texts,
                ..Packed::default()
            };
            // If that fails, the blocks still have them.
            let written = self.write(process, vec![(0, definitions)]);
            if let (Ok(()), Some(file)) = (written, self.files.get_mut(&process)) {
                file.is_defined = true;
            }
        }
    }

    /// Finishes the files, and names them by their ranks.
    fn name_files(self, ended: &str) -> Result<Recorded, FileError> {
        let (mut lost, mut failed, mut files) = (self.lost, None, vec![]);
        for (process, file) in self.files {
            let bytes = match file.writer.finish(ended, file.missing) {
                Ok(bytes) => bytes,
                Err(why) => {
                    lost.get_or_insert(Lost::new(why));
                    fs::metadata(&file.path).map_or(0, |found| found.len())
                }
            };
            let name = match file.rank {
                Some(rank) => format!("rank-{rank}.{ENDING}"),
                None => format!("process-{process}.{ENDING}"),
            };
            let path = self.out.join(name);
            match fs::rename(&file.path, &path) {
                Ok(()) => files.push(Collected {
                    path,
                    rank: file.rank,
                    bytes,
                }),
                Err(why) => failed = Some(FileError::io(&path)(why)),
            }
        }
        let [spool, in_files] = &self.folders;
        // Most ranks have no such folder.
        let _ = fs::remove_dir_all(in_files);
        // At the end: where there is no folder, others take the recording for complete.
        fs::remove_dir_all(spool).map_err(FileError::io(spool))?;
        failed.map_or(Ok(Recorded { files, lost }), Err)
    }

    /// Writes a block to the file of its process, and removes it; one that cannot be read
    /// is set aside.
    ///
    /// # Errors
    /// The records that cannot be written.
    fn take(&mut self, block: StoredBlock) -> Result<(), Lost> {
        let (path, process) = (&self.path(block), block.id.process);
        let block = match Block::read(path) {
            Ok(block) => block,
            Err(why) => {
                // The rank must not wait for it.
                let _ = fs::rename(path, path.with_extension("unreadable"));
                if let Some(file) = self.files.get_mut(&process) {
                    // Nobody knows which records it had.
                    file.missing.begin_at(Some(0));
                }
                self.add_lost(Lost::new(why));
                return Ok(());
            }
        };
        let packed = pack_block(&block);
        let sum = |of: fn(&Packed) -> u64| packed.iter().map(|(_, packed)| of(packed)).sum();
        let (records, calls) = (sum(|of| of.records), sum(|of| of.calls));
        let since = packed.iter().filter_map(|(_, packed)| packed.first).min();
        self.write(process, packed)
            .and_then(|()| fs::remove_file(path).map_err(FileError::io(path)))
            .map_err(|why| Lost {
                why,
                records,
                calls,
                since,
            })
    }

    /// Returns the beginning of the names of files that are not finished: nodes that
    /// share the folder may have processes with the same number.
    fn name_of_parts(&self) -> String {
        let node = self.folders[0].file_name().unwrap_or_default();
        format!(".{}-", node.display())
    }

    /// Goes on with the files of a parent that was killed.
    fn adopt_files(&mut self) {
        let begin = self.name_of_parts();
        // Nothing was written where there is no folder.
        for entry in fs::read_dir(&self.out).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| {
                let number = name.strip_prefix(&begin)?.strip_suffix(".part")?;
                number.strip_suffix(ENDING)?.strip_suffix('.')?.parse().ok()
            });
            if let Some(process) = process
                && let Err(why) = self.open(process)
            {
                // It stays, and so do the blocks that belong to it, in a salvage.
                self.add_lost(Lost::new(why));
            }
        }
    }

    /// Opens the file of a process.
    fn open(&mut self, process: u32) -> Result<&mut ProcessFile, FileError> {
        let name = format!("{}{process}.{ENDING}.part", self.name_of_parts());
        match self.files.entry(process) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let path = self.out.join(name);
                let (writer, before) = if path.exists() {
                    let (writer, before) = RankWriter::resume(&path)?;
                    (writer, Some(before))
                } else {
                    (RankWriter::create(&path)?, None)
                };
                Ok(new.insert(ProcessFile {
                    writer,
                    path,
                    rank: before.as_ref().and_then(|before| rank_in(&before.texts)),
                    before,
                    is_defined: false,
                    missing: MissingCalls::default(),
                }))
            }
        }
    }

    /// Writes the records of a block to the file of its process.
    fn write(&mut self, process: u32, mut packed: Vec<(u32, Packed)>) -> Result<(), FileError> {
        let file = self.open(process)?;
        let mut texts = packed.iter().map(|(_, packed)| &packed.texts);
        let rank = texts.find_map(|texts| rank_in(texts)).or(file.rank);
        for (_, packed) in &mut packed {
            let is_known = |before: &RankFile| before.texts.contains(&packed.texts);
            if file.is_defined || file.before.as_ref().is_some_and(is_known) {
                packed.texts.clear();
            }
        }
        if let Some(before) = &file.before {
            packed.retain(|(thread, packed)| {
                packed.records == 0 || !before.ends_with(*thread, packed)
            });
        }
        file.writer.block(&packed)?;
        file.rank = rank;
        for (_, packed) in &packed {
            file.missing.begin_at(packed.gap);
        }
        Ok(())
    }
}

/// Returns the blocks for which `state` returns one, with their states. A block that became
/// full before one of them is returned, too.
fn find_full<B, S>(mut blocks: Vec<B>, state: impl Fn(&B) -> Option<S>) -> Vec<(B, S)> {
    let mut all = vec![];
    loop {
        let before = all.len();
        // A thread may fill a block after it is read here, and the next one before that is.
        for block in core::mem::take(&mut blocks) {
            match state(&block) {
                Some(state) => all.push((block, state)),
                None => blocks.push(block),
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// Puts the blocks of each thread in their order. A thread that went on in the block of
/// another has a higher number, so that its own blocks are behind that block.
fn in_order(mut blocks: Vec<(StoredBlock, BlockState)>) -> impl Iterator<Item = StoredBlock> {
    blocks.sort_unstable_by_key(|(StoredBlock { id, .. }, state)| {
        (id.process, id.thread, state.order)
    });
    blocks.into_iter().map(|(block, _)| block)
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
    use crate::packed::pack;
    use crate::record::tests::{examples, written};
    use crate::record::thread_head;
    use downbeat_files::testing::Folder;

    fn folder_and_spool() -> (Folder, PathBuf) {
        let (folder, _) = Folder::with("other", b"");
        let spool = folder.file("spool");
        fs::create_dir(&spool).unwrap();
        (folder, spool)
    }

    fn id(thread: u32, sequence: u32) -> BlockId {
        BlockId {
            process: 12,
            thread,
            sequence,
        }
    }

    fn block(folder: &Path, thread: u32, sequence: u32, full: bool, words: &[u64]) {
        let id = id(thread, sequence);
        let mut header = id.header(8 * (8 + words.len()));
        header[crate::block::FULL] = full.into();
        header[crate::block::ORDER] = u64::from(sequence) + 1;
        let all = header.iter().chain(words);
        let bytes: Vec<u8> = all.flat_map(|word| word.to_le_bytes()).collect();
        fs::write(folder.join(id.file_name()), bytes).unwrap();
    }

    #[test]
    fn blocks_become_the_file_of_a_rank() {
        let (folder, spool) = folder_and_spool();
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
        assert_eq!(file.texts.matches("process").count(), 2);
        assert_eq!(file.ended.as_deref(), Some("exit code 0"));
    }

    #[test]
    fn a_block_that_was_full_before_another_is_collected_with_it() {
        // The state of the third is read last; meanwhile the others become full.
        let readings = core::cell::Cell::new(0);
        let state = |block: &u32| {
            readings.set(readings.get() + 1);
            (*block == 3 || (*block == 1 || *block == 2) && readings.get() > 3).then_some(())
        };
        let mut found = find_full(vec![1, 2, 3, 4], state);
        found.sort_unstable();
        assert_eq!(found, [(1, ()), (2, ()), (3, ())]);
    }

    #[test]
    fn threads_that_went_on_in_a_block_keep_their_records() {
        let words = written(&examples());
        let first = [&words[..], &[thread_head(3)], &words[..2]].concat();
        let first = [&first[..], &[thread_head(7)], &words[..5], &[0; 9]].concat();
        // The parent is killed before it removes the first block, or not.
        for is_killed in [false, true] {
            let (folder, spool) = folder_and_spool();
            block(&spool, 0, 0, true, &first);
            let mut collector = Collector::new(&spool, &folder.0);
            if is_killed {
                collector.collect_full(0).unwrap();
                block(&spool, 0, 0, true, &first);
                collector = Collector::new(&spool, &folder.0);
            }
            block(&spool, 3, 1, true, &words[..5]);
            let recorded = collector.finish("exit code 0").unwrap();
            assert!(recorded.lost.is_none());
            let file = RankFile::read(&recorded.files[0].path).unwrap();
            let threads: Vec<u32> = file.blocks.iter().map(|block| block.thread).collect();
            assert_eq!(threads, [0, 3, 7, 3], "killed: {is_killed}");
            let mut found = vec![];
            file.records(file.blocks[2], &mut found).unwrap();
            assert_eq!(found, words[..5]);
        }
    }

    #[test]
    fn what_a_killed_parent_has_written_is_continued() {
        let (folder, spool) = folder_and_spool();
        let words = written(&examples());
        block(&spool, 0, 0, true, &words);
        Collector::new(&spool, &folder.0).collect_full(0).unwrap();
        // The parent was killed before it removed the first block, which has the
        // definition of the rank.
        block(&spool, 0, 0, true, &words);
        block(&spool, 0, 1, false, &words[..2]);
        let recorded = Collector::new(&spool, &folder.0).salvage().unwrap();
        assert_eq!(recorded.files[0].rank, Some(1));
        let file = RankFile::read(&recorded.files[0].path).unwrap();
        assert_eq!(file.blocks.len(), 2);
        assert_eq!(file.texts.matches("process").count(), 1);
    }

    #[test]
    fn the_file_of_a_parent_that_was_killed_at_the_end_gets_its_name() {
        let (folder, _) = Folder::with("other", b"");
        let spool = folder.file("spool");
        for is_finished in [false, true] {
            fs::create_dir(&spool).unwrap();
            block(&spool, 0, 0, true, &written(&examples()));
            let mut collector = Collector::new(&spool, &folder.0);
            collector.collect_full(0).unwrap();
            if is_finished {
                let (_, file) = collector.files.pop_first().unwrap();
                file.writer.finish("exit code 0", file.missing).unwrap();
            }
            let recorded = Collector::new(&spool, &folder.0).salvage().unwrap();
            let file = RankFile::read(&recorded.files[0].path).unwrap();
            assert_eq!((file.blocks.len(), recorded.files.len()), (1, 1));
            assert_eq!(file.ended.as_deref(), Some("its parent was killed"));
        }
    }

    #[test]
    fn one_block_that_cannot_be_read_costs_the_others_nothing() {
        let (folder, spool) = folder_and_spool();
        let words = written(&examples());
        for sequence in 0..3 {
            block(&spool, 0, sequence, true, &words);
        }
        let path = spool.join(id(0, 1).file_name());
        let mut bytes = fs::read(&path).unwrap();
        bytes[0] ^= 1;
        fs::write(&path, bytes).unwrap();
        let mut collector = Collector::new(&spool, &folder.0);
        collector.collect_full(0).unwrap();
        assert!(
            collector.blocks().unwrap().is_empty(),
            "the rank would wait"
        );
        let recorded = collector.finish("exit code 0").unwrap();
        assert!(recorded.lost.is_some());
        let file = RankFile::read(&recorded.files[0].path).unwrap();
        assert_eq!(file.blocks.len(), 2);
    }

    #[test]
    fn what_a_salvage_cannot_write_stays() {
        let (folder, _) = Folder::with("other", b"");
        let [spool, out] = ["spool", "out"].map(|name| folder.file(name));
        fs::create_dir(&spool).unwrap();
        block(&spool, 0, 0, true, &written(&examples()));
        let recorded = Collector::new(&spool, &out).salvage().unwrap();
        assert!(recorded.lost.is_some() && spool.exists());
        fs::create_dir(&out).unwrap();
        let recorded = Collector::new(&spool, &out).salvage().unwrap();
        assert!(recorded.lost.is_none() && !spool.exists());
        assert_eq!(recorded.files[0].rank, Some(1));
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
            let expected = Some(if is_there_at_last { 0 } else { 2 * records });
            assert_eq!(
                (recorded.files.len(), lost),
                (usize::from(is_there_at_last), expected)
            );
            let _ = fs::remove_dir_all(&out);
        }
    }
}
