//! Operations that are measured, and the collective calls around them.

use downbeat_sync::{Comm, CommError, collective};

/// Operation of all ranks that can be called repeatedly: its buffers are allocated.
#[expect(
    async_fn_in_trait,
    reason = "a rank stays on its thread, or on that of the simulator: a Send bound is not needed"
)]
pub trait Operation {
    /// Calls the operation once. `number` counts calls from 0 in every series, so that each call can have another root.
    ///
    /// # Errors
    /// If the operation fails, or a rank is gone.
    async fn call(&mut self, number: u32) -> Result<(), CommError>;

    /// Prepares an observation outside the timed section: brings the caches into a known state.
    fn prepare(&mut self) {}
}

/// Collective calls that coordinate the ranks around an operation.
///
/// Over MPI these are the library's own collectives, otherwise messages.
#[expect(async_fn_in_trait, reason = "as for `Operation`")]
pub trait Coordinator {
    /// Waits for all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    async fn barrier(&self) -> Result<(), CommError>;

    /// Returns the value of rank 0 on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    async fn broadcast(&self, value: u64) -> Result<u64, CommError>;

    /// Returns the bitwise or of all ranks' values on all ranks.
    ///
    /// # Errors
    /// If a rank is gone.
    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError>;
}

/// Coordinator that uses messages of a communicator.
#[derive(Debug)]
pub struct MessageCoordinator<'a, M>(pub &'a M);

impl<M: Comm> Coordinator for MessageCoordinator<'_, M> {
    async fn barrier(&self) -> Result<(), CommError> {
        collective::barrier(self.0).await
    }

    async fn broadcast(&self, value: u64) -> Result<u64, CommError> {
        collective::broadcast(self.0, value).await
    }

    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError> {
        collective::all_reduce(self.0, value, |a, b| a | b).await
    }
}
