//! Threads that hold communicators: with `MPI_THREAD_SERIALIZED`, two of them could call MPI at the same time.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use mpi::environment::{self, Threading};

use super::error::MpiError;

/// The thread that holds communicators, and their number.
static HOLDER: Mutex<Option<(u64, usize)>> = Mutex::new(None);

thread_local! {
    /// Number of this thread. That of the standard library leaves a block behind that leak detectors report.
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// Right of this thread to hold a communicator, until it is dropped on the same thread.
#[derive(Debug)]
pub(super) struct ThreadClaim;

impl ThreadClaim {
    /// Claims the right; MPI must be running.
    ///
    /// # Errors
    /// If MPI allows one thread at a time, and another one holds a communicator.
    pub(super) fn new() -> Result<Self, MpiError> {
        let this = THREAD.with(|number| *number);
        let mut holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match *holder {
            Some((other, _))
                if other != this && environment::threading_support() < Threading::Multiple =>
            {
                return Err(MpiError::SecondThread);
            }
            Some((_, count)) => count,
            None => 0,
        };
        *holder = Some((this, count + 1));
        Ok(Self)
    }
}

impl Drop for ThreadClaim {
    fn drop(&mut self) {
        let mut holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        *holder = holder
            .map(|(thread, count)| (thread, count.saturating_sub(1)))
            .filter(|(_, count)| *count > 0);
    }
}
