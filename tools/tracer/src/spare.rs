//! Blocks of a thread, and the thread of the tracer that prepares them, so that threads of the program find their next
//! block mapped.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, ptr, thread};

use downbeat_recording::block::{BlockId, ENDING, LEAST_BYTES, MOST_BYTES};
use downbeat_recording::settings::{Overflow, STOPPED, WAITING, is_first_rank};

use crate::blocks::Block;
use crate::failure::say_once;
use crate::process::Process;

/// Blocks of one thread.
#[derive(Debug)]
pub(crate) struct Supply {
    process: &'static Process,
    thread: u32,
    sequence: AtomicU32,
    /// Size of the last block.
    bytes: AtomicUsize,
    /// Block that is prepared.
    spare: AtomicPtr<u64>,
    /// True if the thread needs its next block soon.
    is_asked: AtomicBool,
}

/// Tasks of the thread.
struct Work {
    supplies: Vec<Arc<Supply>>,
    unmap: Vec<Block>,
    is_wanted: bool,
    /// True while there is a thread.
    is_served: bool,
}

// SAFETY: each block is unmapped by the one thread that takes it from here.
unsafe impl Send for Work {}

static WORK: Mutex<Work> = Mutex::new(Work {
    supplies: vec![],
    unmap: vec![],
    is_wanted: false,
    is_served: false,
});
static WANTED: Condvar = Condvar::new();

/// Bytes of the blocks in shared memory, when they were last counted, and of those created since.
static SHARED: Mutex<u64> = Mutex::new(0);

fn shared() -> MutexGuard<'static, u64> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks of threads that have ended, in which the next threads go on.
static LEFT: Mutex<Vec<LeftBlock>> = Mutex::new(vec![]);

fn left_blocks() -> MutexGuard<'static, Vec<LeftBlock>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Most blocks that wait for threads.
const MOST_LEFT: usize = 64;

/// Block that a thread has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftBlock {
    pub(crate) block: Block,
    /// Place of the next record.
    pub(crate) next: *mut u64,
}

// SAFETY: one thread at a time writes to a block.
unsafe impl Send for LeftBlock {}

/// Number of blocks that are not full: nobody collects them.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Time without looking for memory, in microseconds.
const PAUSE: u64 = 1_000;

/// Microseconds, by [`microseconds`], before which no thread looks for memory: there was
/// none, and looking takes longer than a call.
static NOT_BEFORE: AtomicU64 = AtomicU64::new(0);

/// Returns the microseconds since it was first called.
fn microseconds() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_micros() as u64
}

fn work() -> MutexGuard<'static, Work> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supply {
    /// Creates the supply of the thread with this number.
    pub(crate) fn new(process: &'static Process, thread: u32) -> Self {
        Self {
            process,
            thread,
            sequence: AtomicU32::new(0),
            bytes: AtomicUsize::new(LEAST_BYTES),
            spare: AtomicPtr::default(),
            is_asked: AtomicBool::new(false),
        }
    }

    /// Returns the number of the thread.
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// Adds the supply to those that are served.
    pub(crate) fn serve(self: &Arc<Self>) {
        work().supplies.push(Arc::clone(self));
    }

    /// Prepares no more blocks: the thread has ended.
    pub(crate) fn end(self: &Arc<Self>) {
        work().supplies.retain(|other| !Arc::ptr_eq(self, other));
    }

    /// Has the next block prepared.
    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
        wake_helper();
    }

    /// Creates the first block, which is small; `None` if there is no memory, and the program
    /// need not wait.
    pub(crate) fn first(&self) -> Option<Block> {
        if !Self::may_find_memory() {
            return None;
        }
        let found = self.create(LEAST_BYTES);
        found.or_else(|| match self.thread {
            // Without a block, nothing of the process could be recorded.
            0 => self.create_in_file(LEAST_BYTES),
            _ => self.await_memory(LEAST_BYTES),
        })
    }

    /// Takes the next block, and returns true if it had to wait for memory; `None` if there is none, and the program need not wait.
    pub(crate) fn next(&self) -> (Option<Block>, bool) {
        let spare = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        match Block::at(spare) {
            None if !Self::may_find_memory() => return (None, false),
            None => {}
            found => return (found, false),
        }
        match self.create(self.next_bytes()) {
            None => (self.await_memory(self.next_bytes()), true),
            found => (found, false),
        }
    }

    /// Returns the size of the next block.
    fn next_bytes(&self) -> usize {
        const GROWTH: usize = 4;
        (self.bytes.load(Ordering::Relaxed) * GROWTH).min(MOST_BYTES)
    }

    /// Returns true if there is a reason to look for memory now.
    fn may_find_memory() -> bool {
        let not_before = NOT_BEFORE.load(Ordering::Relaxed);
        not_before == 0 || microseconds() >= not_before
    }

    /// Waits until blocks are collected; where that frees no memory, creates a block in a file. `None` if nobody collects blocks,
    /// or the program shall not wait.
    fn await_memory(&self, bytes: usize) -> Option<Block> {
        retire_left();
        let settings = &self.process.settings;
        // Otherwise there are files only.
        let is_shared = bytes as u64 <= settings.shared;
        let files_are_full = || bytes_of_blocks(&settings.files) >= Some(settings.most_bytes());
        let found = if settings.overflow == Overflow::Drop {
            let may_use_file = !is_shared && !files_are_full();
            may_use_file.then(|| self.create_in_file(bytes)).flatten()
        } else {
            let mut found = None;
            while found.is_none()
                && (is_shared || files_are_full())
                && self.some_are_collected()
                // The parent sees the file.
                && fs::write(settings.spool.join(WAITING), b"").is_ok()
            {
                thread::sleep(Duration::from_millis(1));
                retire_left();
                found = self.create(bytes);
            }
            found.or_else(|| self.create_in_file(bytes))
        };
        if found.is_none() {
            NOT_BEFORE.store(microseconds() + PAUSE, Ordering::Relaxed);
        }
        found
    }

    /// Returns true if there are full blocks, and a parent that collects them.
    fn some_are_collected(&self) -> bool {
        let settings = &self.process.settings;
        let count = |folder: &Path| number_of_blocks(folder).unwrap_or(0);
        let all = count(&settings.spool) + count(&settings.files);
        all > IN_USE.load(Ordering::Relaxed)
            && !settings.spool.join(STOPPED).exists()
            && self.process.has_parent()
    }

    /// Creates a block in shared memory; `None` if the process uses all that it may.
    fn create(&self, bytes: usize) -> Option<Block> {
        if !self.reserve(bytes as u64) {
            return None;
        }
        let block = self.create_in(&self.process.settings.spool, bytes);
        if block.is_none() {
            let mut shared = shared();
            *shared = shared.saturating_sub(bytes as u64);
        }
        block
    }

    /// Takes this number of bytes from those of shared memory that the process may use.
    fn reserve(&self, bytes: u64) -> bool {
        let settings = &self.process.settings;
        let mut shared = shared();
        if *shared + bytes > settings.shared {
            // Those that were collected are gone. The few that are just being made are
            // not counted.
            let Some(found) = bytes_of_blocks(&settings.spool) else {
                return false;
            };
            *shared = found;
        }
        let fits = *shared + bytes <= settings.shared;
        if fits {
            *shared += bytes;
        }
        fits
    }

    /// Creates a block in a file; `None` if the disk is full, or nobody collects blocks any more.
    fn create_in_file(&self, bytes: usize) -> Option<Block> {
        /// Message that calls take longer, and that they are no longer recorded.
        static SLOWER: Once = Once::new();
        static ENDED: Once = Once::new();
        let settings = &self.process.settings;
        if settings.spool.join(STOPPED).exists() {
            say_once(
                &ENDED,
                "it records no more calls: its recording cannot be written",
            );
            return None;
        }
        if !self.process.has_parent() {
            say_once(
                &ENDED,
                "it records no more calls: the process that collects its records was killed; \
                 `downbeat record --clean` collects them when the program has ended",
            );
            return None;
        }
        // It may be there.
        let _ = fs::create_dir(&settings.files);
        let block = self.create_in(&settings.files, bytes);
        let files = settings.files.display();
        match block {
            // The parent has said so.
            Some(_) if settings.shared == 0 || !is_first_rank(|name| env::var(name).ok()) => {}
            Some(_) => say_once(
                &SLOWER,
                &format!(
                    "there is too little shared memory for this number of threads: more records go to files in {files}, \
                 which takes more time"
                ),
            ),
            None => say_once(
                &ENDED,
                &format!("it records no more calls: there is no memory in {files}"),
            ),
        }
        block
    }

    /// Creates a block for later.
    fn create_ahead(&self) -> Option<Block> {
        let bytes = self.next_bytes();
        match bytes as u64 <= self.process.settings.shared {
            true => self.create(bytes),
            false => self.create_in_file(bytes),
        }
    }

    fn create_in(&self, folder: &Path, bytes: usize) -> Option<Block> {
        let next = || self.id(self.sequence.fetch_add(1, Ordering::Relaxed));
        let mut id = next();
        // A program that replaced itself has blocks already.
        while folder.join(id.file_name()).exists() {
            id = next();
        }
        let block = Block::create(folder, id, bytes)?;
        IN_USE.fetch_add(1, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        Some(block)
    }

    /// Returns the identity of a block of this thread.
    fn id(&self, sequence: u32) -> BlockId {
        BlockId {
            process: std::process::id(),
            thread: self.thread,
            sequence,
        }
    }

    /// Prepares the next block, if the thread needs one soon.
    fn prepare(&self) {
        if self.is_asked.swap(false, Ordering::Relaxed)
            && self.spare.load(Ordering::Relaxed).is_null()
            && let Some(block) = self.create_ahead()
        {
            self.spare.store(block.address(), Ordering::Release);
        }
    }
}

impl Drop for Supply {
    /// Removes the block that was prepared for nothing.
    fn drop(&mut self) {
        if let Some(spare) = Block::at(*self.spare.get_mut()) {
            let name = self.id(spare.sequence()).file_name();
            let settings = &self.process.settings;
            // It is in one of them, and gone if the recording was collected meanwhile.
            let _ = fs::remove_file(settings.spool.join(&name));
            let _ = fs::remove_file(settings.files.join(name));
            IN_USE.fetch_sub(1, Ordering::Relaxed);
            spare.unmap();
        }
    }
}

/// Lists the blocks in a folder.
fn blocks_in(folder: &Path) -> Option<impl Iterator<Item = fs::DirEntry>> {
    let entries = fs::read_dir(folder).ok()?;
    Some(entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().ends_with(ENDING.as_bytes())
    }))
}

fn number_of_blocks(folder: &Path) -> Option<usize> {
    blocks_in(folder).map(Iterator::count)
}

fn bytes_of_blocks(folder: &Path) -> Option<u64> {
    let sizes = blocks_in(folder)?.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    Some(sizes.sum())
}

/// Starts the thread, which takes no signals of the program. Returns false without one: threads create their blocks themselves.
fn start() -> bool {
    // SAFETY: sets of signals are plain memory.
    let mut all: libc::sigset_t = unsafe { core::mem::zeroed() };
    let mut before = all;
    // SAFETY: both sets live.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    // If it is the last thread of the process, handlers of the program run in it: it has
    // a stack of the usual size, and takes signals at its end.
    let started = thread::Builder::new()
        .name("downbeat-trace".to_owned())
        .spawn(move || {
            serve_all();
            // SAFETY: the set lives.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
        });
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    started.is_ok()
}

/// Works until there has been nothing to do for a while: a program whose last thread ends by `pthread_exit` ends
/// with the last thread of the process.
fn serve_all() {
    const PATIENCE: Duration = Duration::from_millis(20);
    let mut waiting = work();
    loop {
        if !waiting.is_wanted {
            let waited = WANTED.wait_timeout(waiting, PATIENCE);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !waiting.is_wanted {
            waiting.is_served = false;
            return;
        }
        waiting.is_wanted = false;
        let supplies = waiting.supplies.clone();
        let unmap = std::mem::take(&mut waiting.unmap);
        drop(waiting);
        unmap.into_iter().for_each(Block::unmap);
        supplies.iter().for_each(|supply| supply.prepare());
        // Those of threads that have ended are freed here, without the lock.
        drop(supplies);
        waiting = work();
    }
}

/// Has the thread work, which is started if there is none.
fn wake_helper() {
    let mut work = work();
    work.is_wanted = true;
    if work.is_served {
        WANTED.notify_one();
    } else {
        work.is_served = start();
    }
}

/// Takes a block that another thread has left.
pub(crate) fn take_left() -> Option<LeftBlock> {
    left_blocks().pop()
}

/// Marks the blocks that threads have left as full, so that they can be collected.
fn retire_left() {
    let left = std::mem::take(&mut *left_blocks());
    left.into_iter()
        .for_each(|LeftBlock { block, .. }| retire(block));
}

/// Leaves the block of a thread that has ended to the next one, or marks it as full if there
/// are enough.
pub(crate) fn pass_on(block: LeftBlock) {
    let mut blocks = left_blocks();
    if blocks.len() < MOST_LEFT {
        blocks.push(block);
    } else {
        drop(blocks);
        retire(block.block);
    }
}

/// Marks a block as full, and unmaps it, in the thread of the tracer if there is one.
pub(crate) fn retire(block: Block) {
    block.fill();
    IN_USE.fetch_sub(1, Ordering::Relaxed);
    let mut work = work();
    if work.is_served {
        work.unmap.push(block);
        work.is_wanted = true;
        WANTED.notify_one();
    } else {
        drop(work);
        block.unmap();
    }
}
