//! What is measured, and what ranks do together around it.

use downbeat_sync::{Comm, CommError, collective};

/// An operation of all ranks that is ready to be called again and again: its buffers are there.
#[expect(
    async_fn_in_trait,
    reason = "a rank stays on its thread, or on the simulator's one: no Send bound is wanted"
)]
pub trait Operation {
    /// Does it once. Calls are counted from 0, in every series anew, so that each can have another root.
    ///
    /// # Errors
    /// When it fails, or a rank is gone.
    async fn call(&mut self, number: u32) -> Result<(), CommError>;

    /// What this rank does before every observation, outside of what is timed: puts the caches in a known state.
    fn prepare(&mut self) {}
}

/// How the ranks come together around what is measured.
///
/// Over MPI this is done by the library's own collectives, and elsewhere by messages.
#[expect(async_fn_in_trait, reason = "as for `Operation`")]
pub trait Together {
    /// Waits for all ranks.
    ///
    /// # Errors
    /// When a rank is gone.
    async fn barrier(&self) -> Result<(), CommError>;

    /// Tells all ranks the word of rank 0.
    ///
    /// # Errors
    /// When a rank is gone.
    async fn broadcast(&self, word: u64) -> Result<u64, CommError>;

    /// Tells all ranks the bits that any of their words has.
    ///
    /// # Errors
    /// When a rank is gone.
    async fn union(&self, word: u64) -> Result<u64, CommError>;
}

/// Coming together by messages.
#[derive(Debug)]
pub struct ByMessages<'a, M>(pub &'a M);

impl<M: Comm> Together for ByMessages<'_, M> {
    async fn barrier(&self) -> Result<(), CommError> {
        collective::barrier(self.0).await
    }

    async fn broadcast(&self, word: u64) -> Result<u64, CommError> {
        collective::broadcast(self.0, word).await
    }

    async fn union(&self, word: u64) -> Result<u64, CommError> {
        collective::all_reduce(self.0, word, |a, b| a | b).await
    }
}
