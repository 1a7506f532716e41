//! Blocks that a thread of the tracer prepares, so that threads of the program find their next block mapped.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use std::{fs, ptr, thread};

use downbeat_recording::block::BlockId;
use downbeat_recording::settings::Overflow;

use crate::blocks::Block;
use crate::process::Process;

/// Blocks of one thread.
#[derive(Debug)]
pub(crate) struct Supply {
    process: &'static Process,
    thread: u32,
    sequence: AtomicU32,
    /// Block that is prepared.
    spare: AtomicPtr<u64>,
}

/// Tasks of the thread.
struct Work {
    supplies: Vec<Arc<Supply>>,
    unmap: Vec<Block>,
    is_wanted: bool,
}

// SAFETY: each block is unmapped by the one thread that takes it from here.
unsafe impl Send for Work {}

static WORK: Mutex<Work> = Mutex::new(Work {
    supplies: vec![],
    unmap: vec![],
    is_wanted: false,
});
static WANTED: Condvar = Condvar::new();

/// Number of blocks of this process, when it was last counted, and those created since.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

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
            spare: AtomicPtr::default(),
        }
    }

    /// Prepares blocks from now on.
    pub(crate) fn serve(self: &Arc<Self>) {
        static STARTED: Once = Once::new();
        work().supplies.push(Arc::clone(self));
        STARTED.call_once(start);
        wanted();
    }

    /// Prepares no more blocks: the thread has ended.
    pub(crate) fn end(self: &Arc<Self>) {
        work().supplies.retain(|other| !Arc::ptr_eq(self, other));
    }

    /// Takes the next block; `None` if the process uses all memory that it may.
    pub(crate) fn take(&self) -> Option<Block> {
        let spare = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        Block::at(spare).or_else(|| self.create())
    }

    /// Takes the next block, and returns true if it had to wait for memory; `None` if the process uses all memory that it may, and the
    /// program need not wait.
    pub(crate) fn await_block(&self) -> (Option<Block>, bool) {
        let mut found = self.take();
        let mut waited = false;
        while found.is_none() && self.process.settings.overflow == Overflow::Flush {
            waited = true;
            thread::sleep(Duration::from_millis(1));
            found = self.take();
        }
        (found, waited)
    }

    fn create(&self) -> Option<Block> {
        let settings = &self.process.settings;
        if BLOCKS.load(Ordering::Relaxed) >= settings.most_blocks() {
            // Those that were collected are gone.
            let entries = fs::read_dir(&settings.spool).ok()?;
            BLOCKS.store(entries.count(), Ordering::Relaxed);
            if BLOCKS.load(Ordering::Relaxed) >= settings.most_blocks() {
                return None;
            }
        }
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        Block::create(&settings.spool, self.id(sequence))
    }

    /// Returns the identity of a block of this thread.
    fn id(&self, sequence: u32) -> BlockId {
        BlockId {
            process: std::process::id(),
            thread: self.thread,
            sequence,
        }
    }

    /// Prepares the next block, if there is none.
    fn prepare(&self) {
        if self.spare.load(Ordering::Relaxed).is_null()
            && let Some(block) = self.create()
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
            // It is gone if the recording was collected meanwhile.
            let _ = fs::remove_file(self.process.settings.spool.join(name));
            spare.unmap();
        }
    }
}

/// Starts the thread, which takes no signals of the program.
fn start() {
    // SAFETY: sets of signals are plain memory.
    let mut all: libc::sigset_t = unsafe { core::mem::zeroed() };
    let mut before = all;
    // SAFETY: both sets live.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    // Without it, threads create their blocks themselves.
    let _ = thread::Builder::new()
        .name("downbeat-trace".to_owned())
        .stack_size(64 << 10)
        .spawn(prepare);
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
}

fn prepare() {
    let mut waiting = work();
    loop {
        while !waiting.is_wanted {
            waiting = WANTED.wait(waiting).unwrap_or_else(PoisonError::into_inner);
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

/// Asks for the next block.
pub(crate) fn wanted() {
    work().is_wanted = true;
    WANTED.notify_one();
}

/// Unmaps a block when there is time.
pub(crate) fn unmap_later(block: Block) {
    work().unmap.push(block);
}
