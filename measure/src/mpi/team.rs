//! Threads of a rank that call an operation at once.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, yield_now};

use downbeat_sync::MpiError;

use super::calls::{CallArguments, MpiCall};

/// Threads besides the calling one.
#[derive(Debug)]
pub(super) struct ThreadTeam {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    call: MpiCall,
    /// Number of calls that were begun.
    begun: AtomicUsize,
    /// Number of workers that have not ended the last of them.
    pending: AtomicUsize,
    is_over: AtomicBool,
    /// Arguments and outcome of each worker's call.
    work: Vec<Mutex<Work>>,
}

#[derive(Debug)]
struct Work {
    arguments: Option<CallArguments>,
    outcome: Result<(), MpiError>,
}

// SAFETY: what the arguments point to is used by one thread at a time: the worker's during a call, for which the caller waits.
unsafe impl Send for Work {}

impl ThreadTeam {
    /// Starts threads.
    pub(super) fn new(workers: usize, call: MpiCall) -> std::io::Result<Self> {
        let none = || {
            Mutex::new(Work {
                arguments: None,
                outcome: Ok(()),
            })
        };
        let shared = Arc::new(Shared {
            call,
            begun: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            work: (0..workers).map(|_| none()).collect(),
        });
        let mut team = Self {
            shared: Arc::clone(&shared),
            workers: Vec::new(),
        };
        for index in 0..workers {
            let shared = Arc::clone(&shared);
            let worker = thread::Builder::new().name(format!("caller {}", index + 1));
            // On failure, the threads that exist are ended.
            team.workers.push(worker.spawn(move || shared.work(index))?);
        }
        Ok(team)
    }

    /// Makes a call in this thread, and one in each of the others, and waits for all.
    ///
    /// # Safety
    /// As for [`MpiCall`], for the arguments of all calls; each has buffers and a communicator of its own, and MPI allows calls of several
    /// threads at once.
    #[inline(always)]
    pub(super) unsafe fn run<'a>(
        &self,
        own: &CallArguments,
        others: impl Iterator<Item = &'a CallArguments>,
    ) -> Result<(), MpiError> {
        let shared = &*self.shared;
        for (work, arguments) in shared.work.iter().zip(others) {
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            work.arguments = Some(*arguments);
        }
        shared.pending.store(shared.work.len(), Ordering::Relaxed);
        shared.begun.fetch_add(1, Ordering::Release);
        // SAFETY: guaranteed by the caller.
        let mut outcome = unsafe { (shared.call)(own) };
        wait_until(|| shared.pending.load(Ordering::Acquire) == 0);
        for work in &shared.work {
            let work = work.lock().unwrap_or_else(PoisonError::into_inner);
            outcome = outcome.and(work.outcome);
        }
        outcome
    }

    /// Leaves the threads alone: one may be waiting in a call for ever.
    pub(super) fn abandon(&mut self) {
        self.workers.clear();
    }
}

impl Shared {
    /// Makes the calls of a worker.
    fn work(&self, index: usize) {
        let mut made = 0;
        loop {
            wait_until(|| self.begun.load(Ordering::Acquire) != made);
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            made += 1;
            let work = self.work.get(index).map(Mutex::lock);
            let Some(mut work) = work.map(|work| work.unwrap_or_else(PoisonError::into_inner))
            else {
                return;
            };
            if let Some(arguments) = work.arguments.take() {
                // SAFETY: guaranteed by the caller of `run`, which waits for this call.
                work.outcome = unsafe { (self.call)(&arguments) };
            }
            drop(work);
            self.pending.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Waits for another thread, which is about to run: without leaving the core at first, and with other threads on it after that.
fn wait_until(condition: impl Fn() -> bool) {
    const SPINS: u32 = 2_000;
    let mut spins = 0;
    while !condition() {
        if spins < SPINS {
            spins += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}

impl Drop for ThreadTeam {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.begun.fetch_add(1, Ordering::Release);
        for worker in self.workers.drain(..) {
            // A panic of a worker has been reported.
            let _ = worker.join();
        }
    }
}
