//! Begin and end of the records of a thread.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{self, null};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use downbeat_clock_core::Clock as _;

use super::{Dropped, NO_CALL, THREAD, Thread, early_limit};
use crate::process;
use crate::spare::{self, LeftBlock, Supply};

/// Value that each thread has of its own, at whose end [`ended`] is called; `None` if the process has no more of them: then threads
/// keep their memory.
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

thread_local! {
    /// Number of a thread that had no memory yet.
    static WAITING: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Calls of threads that had no memory yet, which another thread records.
static LOST: Mutex<Dropped> = Mutex::new(Dropped::NONE);

fn lost() -> MutexGuard<'static, Dropped> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Thread {
    #[cold]
    pub(super) fn start() -> Option<&'static Self> {
        if process::is_off() {
            return None;
        }
        let process = process::get()?;
        let key = *KEY.get_or_init(watch);
        let waiting = WAITING.take();
        // Its number must be higher than that of the threads before in the block.
        let left = spare::take_left();
        let number = waiting
            .filter(|_| left.is_none())
            .unwrap_or_else(|| process.next_thread());
        let supply = Arc::new(Supply::new(process, number));
        let (block, next) = match left {
            Some(LeftBlock { block, next }) => (block, next),
            None => {
                let Some(block) = supply.first() else {
                    if number == 0 {
                        process::switch_off();
                        return None;
                    }
                    // The program goes on, and the next call tries again.
                    WAITING.set(Some(number));
                    lost().add(process.clock.ticks().0);
                    return None;
                };
                block.begin(1);
                (block, block.first())
            }
        };
        let thread: &'static Self = Box::leak(Box::new(Self {
            next: Cell::new(next),
            limit: Cell::new(early_limit(block)),
            clock: process.clock,
            folded: Cell::default(),
            is_quiet: Cell::new(false),
            fortran: Cell::new(NO_CALL),
            depth: Cell::new(0),
            outermost: Cell::new(0),
            outermost_call: Cell::new(NO_CALL),
            dropped: Cell::new(Dropped::NONE),
            requests: Cell::new(u64::from(number) << 40),
            watched: Cell::default(),
            block: Cell::new(block),
            order: Cell::new(1),
            supply,
            process,
        }));
        THREAD.set(thread);
        if left.is_some() {
            thread.continue_block();
        }
        thread.tell_lost();
        thread.supply.serve();
        if let Some(key) = key {
            // SAFETY: the key was made.
            unsafe { libc::pthread_setspecific(key, ptr::from_ref(thread).cast()) };
        }
        Some(thread)
    }
}

impl Thread {
    /// Records the calls of threads without memory.
    pub(super) fn tell_lost(&self) {
        let lost = std::mem::replace(&mut *lost(), Dropped::NONE);
        self.put_dropped(lost);
    }

    /// Records calls that were not recorded; if there is still no room, another thread
    /// does.
    pub(super) fn put_dropped(&self, dropped: Dropped) {
        if dropped.count == 0 {
            return;
        }
        let place = self.next.get();
        self.put(&dropped.record());
        if self.next.get() == place {
            lost().merge(dropped);
        }
    }
}

/// Has forks and ends of threads noticed.
fn watch() -> Option<libc::pthread_key_t> {
    // SAFETY: the function only stores.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    let mut key = 0;
    // SAFETY: the key lives, and values are threads.
    let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) };
    (failed == 0).then_some(key)
}

/// Ends tracing in a child that was forked, which shares the blocks of its parent.
extern "C" fn forked() {
    process::switch_off();
    THREAD.set(null());
}

/// Frees the memory of a thread that ends, whose last block can be collected. If other functions that run at its end call MPI, another
/// thread is recorded.
unsafe extern "C" fn ended(thread: *mut c_void) {
    let thread = thread.cast::<Thread>();
    // In a child that was forked, the thread is that of the parent.
    if THREAD.replace(null()) != thread.cast_const() {
        return;
    }
    // SAFETY: it was made by `start`, and this thread, the only one that uses it, does so no more.
    let thread = unsafe { Box::from_raw(thread) };
    thread.tell_dropped();
    thread.supply.end();
    thread.leave_block();
}
