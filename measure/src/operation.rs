//! Operations that are measured, and the collective calls around them.

use downbeat_sync::{Comm, CommError, collective};

/// Operation of all ranks that can be called repeatedly: its buffers are allocated.
///
/// An implementation makes the call of a library measurable by every scheme, stopping rule and processing. The crate's example
/// `own_operation` is a whole program; with MPI, ranks are processes and nothing else changes. Libraries in C and Fortran are measured by
/// `downbeat-mpi bench --operation FILE:NAME`.
///
/// ```
/// use downbeat_measure::{Comm, Operation, ThreadCluster, block_on_ready};
/// use downbeat_sync::CommError;
///
/// /// Passes a number on to the next rank.
/// struct Shift<'a, M> {
///     comm: &'a M,
///     received: u64,
/// }
///
/// impl<M: Comm> Operation for Shift<'_, M> {
///     async fn call(&mut self, number: u32) -> Result<(), CommError> {
///         let (rank, ranks) = (self.comm.rank(), self.comm.size());
///         self.comm.send((rank + 1) % ranks, u64::from(number + rank)).await?;
///         self.received = self.comm.recv((rank + ranks - 1) % ranks).await?;
///         Ok(())
///     }
/// }
///
/// let received = ThreadCluster::new(3).run(|comm| {
///     let mut shift = Shift { comm, received: 0 };
///     block_on_ready(shift.call(10)).map(|()| shift.received)
/// })?;
/// assert_eq!(received, [Ok(12), Ok(10), Ok(11)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// Prepares a call inside a series that is timed as a whole, before each but the first: takes another message if caches are to
    /// be cold. This takes some nanoseconds of the series.
    fn prepare_in_series(&mut self) {}

    /// Returns true if [`prepare_in_series`](Self::prepare_in_series) leaves the caches in the state that [`prepare`](Self::prepare)
    /// does.
    fn fits_series(&self) -> bool {
        true
    }
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
