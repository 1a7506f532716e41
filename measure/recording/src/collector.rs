//! Collection of the blocks that a rank leaves in a folder of shared memory into a file.

use std::collections::{BTreeMap, HashSet, btree_map::Entry};
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::FileError;

use crate::Definition;
use crate::block::{BlockId, FULL, Header, ORDER, read_block, read_header};
use crate::packed::{PackedBlock, definitions_in};
use crate::rank_file::{ENDING, MissingCalls, RankFile, RankWriter};
use crate::settings::{STOPPED, WAITING};

/// Collector of the blocks of a rank: of all processes that leave some in its folders.
#[derive(Debug, Default)]
pub struct Collector {
    /// Folder of shared memory, and the one for blocks in files.
    folders: [PathBuf; 2],
    /// Folder of the files of all ranks.
    out: PathBuf,
    files: BTreeMap<u32, ProcessFile>,
    /// Blocks whose definitions are in the files, but not their records.
    defined: HashSet<BlockId>,
    /// Records that could not be read or written.
    lost: Option<LostRecords>,
    /// True if no block is collected before the end.
    is_stopped: bool,
}

/// File of one process.
#[derive(Debug)]
struct ProcessFile {
    writer: RankWriter,
    rank: Option<u32>,
    /// Contents of the file of a parent that was killed.
    before: RankFile,
    missing: MissingCalls,
}

/// Files of a rank that ended, and what they lack.
#[derive(Debug)]
#[non_exhaustive]
pub struct Collection {
    /// Files, one for each process: `rank-N.dbrank`, or another name if it did not get
    /// through `MPI_Init`.
    pub files: Vec<PathBuf>,
    /// Records that are missing.
    pub lost: Option<LostRecords>,
}

/// Records that could not be written at the end.
#[derive(Debug)]
#[non_exhaustive]
pub struct LostRecords {
    /// First error.
    pub why: FileError,
    /// Number of records that could not be written at the end.
    pub records: u64,
    /// Number of calls that these stand for.
    pub calls: u64,
}

/// Path of a block, and its identity.
type StoredBlock = (PathBuf, BlockId);

/// Files whose space is kept for the time when the disk is full: for definitions, and for
/// the ends of files.
const RESERVES: [(&str, usize); 2] = [("definitions", 1 << 18), ("end", 1 << 12)];

/// Returns the folder in which a rank keeps its blocks in files, for its folder of shared
/// memory and the folder of the files of all ranks.
pub fn folder_of_files(spool: &Path, out: &Path) -> PathBuf {
    // Nodes that share the folder may have processes with the same number.
    let name = spool.file_name().unwrap_or_default();
    out.join(format!(".{}.blocks", name.display()))
}

impl Collector {
    /// Creates a collector of the blocks in the folder `spool`, which writes files to the
    /// folder `out`.
    pub fn new(spool: &Path, out: &Path) -> Self {
        Self {
            folders: [spool.to_owned(), folder_of_files(spool, out)],
            out: out.to_owned(),
            ..Self::default()
        }
    }

    /// Collects the blocks that are full, if blocks have more than `most` bytes or the
    /// rank waits for memory. Returns true if it waited.
    ///
    /// When a file cannot be written, it tells the rank to wait no more, and collects no
    /// blocks until [`finish`](Self::finish).
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn collect_full(&mut self, most: u64) -> Result<bool, FileError> {
        let waits = fs::remove_file(self.folders[0].join(WAITING)).is_ok();
        if self.is_stopped {
            return Ok(false);
        }
        // The states of all would be read at each look otherwise.
        let blocks = self.list_blocks()?.into_iter();
        let sizes = blocks.filter_map(|(path, _)| Some(fs::metadata(path).ok()?.len()));
        if !waits && sizes.sum::<u64>() <= most {
            return Ok(false);
        }
        let blocks = self.find_blocks(|header| header[FULL] == 1)?;
        if self.files.is_empty() && !blocks.is_empty() {
            for (purpose, bytes) in RESERVES {
                // Without it, less of the end can be written.
                let _ = fs::write(self.unfinished_file(purpose), vec![0; bytes]);
            }
        }
        for (path, id) in blocks {
            if let Err(lost) = self.collect_block(&path, id) {
                self.add_lost(lost.0, &PackedBlock::default());
                self.is_stopped = true;
                let stopped = self.folders[0].join(STOPPED);
                fs::write(&stopped, b"").map_err(FileError::io(&stopped))?;
                break;
            }
        }
        Ok(waits)
    }

    /// Collects all blocks, after the rank has ended, and removes its folders. `ended`
    /// tells how it ended.
    ///
    /// # Errors
    /// If a folder cannot be read or removed, or a file not be named.
    pub fn finish(mut self, ended: &str) -> Result<Collection, FileError> {
        self.collect_all()?;
        self.name_files(ended)
    }

    /// Does the same for a rank whose parent was killed; what cannot be written stays
    /// where it is.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn salvage(mut self) -> Result<Collection, FileError> {
        self.collect_all()?;
        if self.lost.as_ref().is_some_and(|lost| lost.records > 0) {
            let (files, lost) = (vec![], self.lost);
            return Ok(Collection { files, lost });
        }
        self.name_files("its parent was killed")
    }

    fn collect_all(&mut self) -> Result<(), FileError> {
        self.adopt_files();
        // There may be space again.
        let blocks = self.find_blocks(|header| header[ORDER] > 0)?;
        // Usually there is none.
        let _ = fs::remove_file(self.unfinished_file(RESERVES[0].0));
        // Without the definitions of all blocks, no record can be read.
        for (path, id) in &blocks {
            // If that fails, the block still has them.
            let _ = self.write_definitions(path, *id);
        }
        for (path, id) in blocks {
            if let Err(lost) = self.collect_block(&path, id) {
                let (why, block) = *lost;
                self.add_lost(why, &block);
                if let Some(file) = self.files.get_mut(&id.process) {
                    file.missing.lost += block.calls;
                    file.missing.begin_at(block.first);
                }
            }
        }
        let _ = fs::remove_file(self.unfinished_file(RESERVES[1].0));
        Ok(())
    }

    /// Lists the blocks, with the path of each.
    fn list_blocks(&self) -> Result<Vec<StoredBlock>, FileError> {
        let mut found = vec![];
        for (index, folder) in self.folders.iter().enumerate() {
            let entries = match fs::read_dir(folder) {
                // There is no block in a file.
                Err(_) if index > 0 => continue,
                entries => entries.map_err(FileError::io(folder))?,
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let id = name.to_str().and_then(BlockId::from_file_name);
                found.extend(id.map(|id| (entry.path(), id)));
            }
        }
        Ok(found)
    }

    /// Lists the blocks with such a header, those of each thread in their order. A thread
    /// that went on in the block of another has a higher number, so that its own blocks
    /// are behind that block.
    fn find_blocks(&self, is_wanted: fn(&Header) -> bool) -> Result<Vec<StoredBlock>, FileError> {
        let header = |(path, _): &StoredBlock| read_header(path).filter(is_wanted);
        let mut found = find_full(self.list_blocks()?, header);
        found.sort_unstable_by_key(|((_, id), header)| (id.process, id.thread, header[ORDER]));
        Ok(found.into_iter().map(|(block, _)| block).collect())
    }

    /// Writes a block to the file of its process, and removes it; one that cannot be read
    /// is set aside.
    ///
    /// # Errors
    /// The records that cannot be written, with the reason.
    fn collect_block(
        &mut self,
        path: &Path,
        id: BlockId,
    ) -> Result<(), Box<(FileError, PackedBlock)>> {
        let words = match read_block(path) {
            Ok(words) => words,
            Err(why) => {
                // The rank must not wait for it.
                let _ = fs::rename(path, path.with_extension("unreadable"));
                if let Some(file) = self.files.get_mut(&id.process) {
                    // Nobody knows which records it had.
                    file.missing.begin_at(Some(0));
                }
                self.add_lost(why, &PackedBlock::default());
                return Ok(());
            }
        };
        let mut block = PackedBlock::pack(id.thread, &words);
        self.write_block(id, &mut block)
            .and_then(|()| fs::remove_file(path).map_err(FileError::io(path)))
            .map_err(|why| Box::new((why, block)))
    }

    /// Writes the records of a block to the file of its process, apart from what is in
    /// it.
    fn write_block(&mut self, id: BlockId, block: &mut PackedBlock) -> Result<(), FileError> {
        let is_defined = self.defined.contains(&id);
        let file = self.open_file(id.process)?;
        if is_defined || file.before.texts.contains(&block.texts) {
            block.texts.clear();
        }
        let threads = &mut block.threads;
        threads.retain(|packed| packed.records > 0 && !file.before.ends_with(packed));
        file.writer.write_block(block)?;
        file.rank = rank_in(&block.texts).or(file.rank);
        file.missing.begin_at(block.gap);
        Ok(())
    }

    /// Writes the definitions in a block to the file of its process, unless they are in
    /// it.
    fn write_definitions(&mut self, path: &Path, id: BlockId) -> Result<(), FileError> {
        let texts = definitions_in(&read_block(path)?);
        let empty = PackedBlock::default();
        let mut block = PackedBlock { texts, ..empty };
        self.write_block(id, &mut block)?;
        self.defined.insert(id);
        Ok(())
    }

    /// Opens the file of a process.
    fn open_file(&mut self, process: u32) -> Result<&mut ProcessFile, FileError> {
        let path = self.unfinished_file(&format!("{process}.{ENDING}.part"));
        match self.files.entry(process) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let (writer, before) = RankWriter::open(&path)?;
                Ok(new.insert(ProcessFile {
                    writer,
                    rank: rank_in(&before.texts),
                    before,
                    missing: MissingCalls::default(),
                }))
            }
        }
    }

    /// Goes on with the files of a parent that was killed.
    fn adopt_files(&mut self) {
        // Nothing was written where there is no folder.
        for entry in fs::read_dir(&self.out).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.rsplit('-').next());
            let number = number.and_then(|end| end.split('.').next()?.parse().ok());
            if let Some(process) = number
                && entry.path() == self.unfinished_file(&format!("{process}.{ENDING}.part"))
                && let Err(why) = self.open_file(process)
            {
                // It stays, and so do the blocks that belong to it, in a salvage.
                self.add_lost(why, &PackedBlock::default());
            }
        }
    }

    /// Returns the path of a file that is not finished, or that keeps space: nodes that
    /// share the folder may have processes with the same number.
    fn unfinished_file(&self, name: &str) -> PathBuf {
        let node = self.folders[0].file_name().unwrap_or_default();
        self.out.join(format!(".{}-{name}", node.display()))
    }

    /// Keeps the first reason why records are missing, and counts them.
    fn add_lost(&mut self, why: FileError, block: &PackedBlock) {
        let (records, calls) = (0, 0);
        let lost = LostRecords {
            why,
            records,
            calls,
        };
        let lost = self.lost.get_or_insert(lost);
        lost.records += block.records();
        lost.calls += block.calls;
    }

    /// Finishes the files, and names them by their ranks.
    fn name_files(mut self, ended: &str) -> Result<Collection, FileError> {
        let (mut failed, mut files) = (None, vec![]);
        for (process, mut file) in std::mem::take(&mut self.files) {
            if let Err(why) = file.writer.finish(ended, file.missing) {
                self.add_lost(why, &PackedBlock::default());
            }
            let of_process = || format!("process-{process}.{ENDING}");
            let of_rank = |rank| format!("rank-{rank}.{ENDING}");
            let path = self.out.join(file.rank.map_or_else(of_process, of_rank));
            match fs::rename(&file.writer.path, &path) {
                Ok(()) => files.push(path),
                Err(why) => failed = Some(FileError::io(&path)(why)),
            }
        }
        let [spool, in_files] = &self.folders;
        // Most ranks have no such folder.
        let _ = fs::remove_dir_all(in_files);
        // At the end: where there is no folder, others take the recording for complete.
        fs::remove_dir_all(spool).map_err(FileError::io(spool))?;
        let lost = self.lost;
        failed.map_or(Ok(Collection { files, lost }), Err)
    }
}

/// Returns the blocks for which `state` returns one, with their states. A block that
/// became full before one of them is returned, too.
fn find_full<B, S>(mut blocks: Vec<B>, state: impl Fn(&B) -> Option<S>) -> Vec<(B, S)> {
    let mut all = vec![];
    loop {
        let before = all.len();
        // A thread may fill a block after it is read here, and the next one before that
        // is.
        for block in std::mem::take(&mut blocks) {
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

/// Returns the rank that definitions tell.
fn rank_in(texts: &str) -> Option<u32> {
    let mut definitions = texts.lines().filter_map(Definition::parse);
    definitions.find_map(|definition| match definition {
        Definition::Process { rank, .. } => Some(rank),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use crate::packed::tests::pack_one;
    use crate::record::tests::{example_words, examples};
    use downbeat_files::testing::TemporaryFolder;

    fn folder_and_spool() -> (TemporaryFolder, PathBuf) {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
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
        header[FULL] = full.into();
        header[ORDER] = u64::from(sequence) + 1;
        let all = header.iter().chain(words);
        let bytes: Vec<u8> = all.flat_map(|word| word.to_le_bytes()).collect();
        fs::write(folder.join(id.file_name()), bytes).unwrap();
    }

    #[test]
    fn blocks_become_the_file_of_a_rank() {
        let (folder, spool) = folder_and_spool();
        let words = example_words();
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
        assert_eq!(collected, [folder.file("rank-1.dbrank")]);
        let file = RankFile::read(&collected[0]).unwrap();
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
        let words = example_words();
        let first = [&words[..], &[Record::of_thread(3).head], &words[..2]].concat();
        let first = [
            &first[..],
            &[Record::of_thread(7).head],
            &words[..5],
            &[0; 9],
        ]
        .concat();
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
            let file = RankFile::read(&recorded.files[0]).unwrap();
            let threads: Vec<u32> = file.blocks.iter().map(|block| block.thread).collect();
            assert_eq!(threads, [0, 3, 7, 3], "killed: {is_killed}");
            let mut records = file.read_block(file.blocks[2]).unwrap();
            for expected in &examples()[..2] {
                assert_eq!(records.next_record().unwrap(), Some(*expected));
            }
            assert_eq!(records.next_record().unwrap(), None);
        }
    }

    #[test]
    fn what_a_killed_parent_has_written_is_continued() {
        let (folder, spool) = folder_and_spool();
        let words = example_words();
        block(&spool, 0, 0, true, &words);
        Collector::new(&spool, &folder.0).collect_full(0).unwrap();
        // The parent was killed before it removed the first block, which has the
        // definition of the rank.
        block(&spool, 0, 0, true, &words);
        block(&spool, 0, 1, false, &words[..2]);
        let recorded = Collector::new(&spool, &folder.0).salvage().unwrap();
        assert_eq!(recorded.files[0], folder.file("rank-1.dbrank"));
        let file = RankFile::read(&recorded.files[0]).unwrap();
        assert_eq!(file.blocks.len(), 2);
        assert_eq!(file.texts.matches("process").count(), 1);
    }

    #[test]
    fn the_file_of_a_parent_that_was_killed_at_the_end_gets_its_name() {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let spool = folder.file("spool");
        for is_finished in [false, true] {
            fs::create_dir(&spool).unwrap();
            block(&spool, 0, 0, true, &example_words());
            let mut collector = Collector::new(&spool, &folder.0);
            collector.collect_full(0).unwrap();
            if is_finished {
                let (_, mut file) = collector.files.pop_first().unwrap();
                file.writer.finish("exit code 0", file.missing).unwrap();
            }
            let recorded = Collector::new(&spool, &folder.0).salvage().unwrap();
            let file = RankFile::read(&recorded.files[0]).unwrap();
            assert_eq!((file.blocks.len(), recorded.files.len()), (1, 1));
            assert_eq!(file.ended.as_deref(), Some("its parent was killed"));
        }
    }

    #[test]
    fn one_block_that_cannot_be_read_costs_the_others_nothing() {
        let (folder, spool) = folder_and_spool();
        let words = example_words();
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
            collector.list_blocks().unwrap().is_empty(),
            "the rank would wait"
        );
        let recorded = collector.finish("exit code 0").unwrap();
        assert!(recorded.lost.is_some());
        let file = RankFile::read(&recorded.files[0]).unwrap();
        assert_eq!(file.blocks.len(), 2);
    }

    #[test]
    fn what_a_salvage_cannot_write_stays() {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let [spool, out] = ["spool", "out"].map(|name| folder.file(name));
        fs::create_dir(&spool).unwrap();
        block(&spool, 0, 0, true, &example_words());
        let recorded = Collector::new(&spool, &out).salvage().unwrap();
        assert!(recorded.lost.is_some() && spool.exists());
        fs::create_dir(&out).unwrap();
        let recorded = Collector::new(&spool, &out).salvage().unwrap();
        assert!(recorded.lost.is_none() && !spool.exists());
        assert_eq!(recorded.files[0], out.join("rank-1.dbrank"));
    }

    #[test]
    fn what_cannot_be_written_is_kept_until_the_end() {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let [spool, out] = ["spool", "out"].map(|name| folder.file(name));
        fs::create_dir(&spool).unwrap();
        let words = example_words();
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
            let records = pack_one(&words).records();
            let expected = Some(if is_there_at_last { 0 } else { 2 * records });
            assert_eq!(
                (recorded.files.len(), lost),
                (usize::from(is_there_at_last), expected)
            );
            let _ = fs::remove_dir_all(&out);
        }
    }
}
