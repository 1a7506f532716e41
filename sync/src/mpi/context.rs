//! Calls of MPI, each with a check of its return code.

use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use mpi::ffi::{self, MPI_Comm};
use mpi::raw::AsRaw;
use mpi::traits::{Communicator, Equivalence};

use super::end::{check_running, notice_finalize};
use super::error::MpiError;
use super::launcher::check_world;
use super::thread_claim::ThreadClaim;

/// Communicator of our own, whose calls return errors. Freed when dropped.
#[derive(Debug)]
pub(super) struct Context {
    raw: MPI_Comm,
    /// Only the thread that created the communicator may use it.
    one_thread: PhantomData<*const ()>,
    _claim: ThreadClaim,
}

/// Function that sends: buffer, number and type of its elements, receiver, tag and communicator.
type SendFunction =
    unsafe extern "C" fn(*const c_void, c_int, ffi::MPI_Datatype, c_int, c_int, MPI_Comm) -> c_int;

/// Messages need no tags: they are received in order.
const TAG: c_int = 0;

fn undefined() -> c_int {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_UNDEFINED }
}

fn null_comm() -> MPI_Comm {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_COMM_NULL }
}

impl Context {
    pub(super) fn duplicate(comm: &impl Communicator) -> Result<Self, MpiError> {
        // SAFETY: a value of this type holds a communicator.
        unsafe { Self::duplicate_raw(comm.as_raw()) }
    }

    /// # Safety
    /// MPI must be running, and `comm` must be a valid communicator.
    pub(super) unsafe fn duplicate_raw(comm: MPI_Comm) -> Result<Self, MpiError> {
        let claim = ThreadClaim::new()?;
        let mut is_inter = 0;
        // SAFETY: the caller guarantees a valid communicator, and `is_inter` can be written to.
        let code = unsafe { ffi::MPI_Comm_test_inter(comm, &raw mut is_inter) };
        MpiError::check("MPI_Comm_test_inter", code)?;
        if is_inter != 0 {
            return Err(MpiError::InterCommunicator);
        }
        let mut size = 0;
        // SAFETY: as above, with `size`.
        let code = unsafe { ffi::MPI_Comm_size(comm, &raw mut size) };
        MpiError::check("MPI_Comm_size", code)?;
        check_world(comm, size)?;
        let mut raw = null_comm();
        // SAFETY: as above, with `raw`.
        let code = unsafe { ffi::MPI_Comm_dup(comm, &raw mut raw) };
        MpiError::check("MPI_Comm_dup", code)?;
        Self::own(raw, claim)
    }

    /// Takes ownership of a new communicator.
    fn own(raw: MPI_Comm, claim: ThreadClaim) -> Result<Self, MpiError> {
        let context = Self {
            raw,
            one_thread: PhantomData,
            _claim: claim,
        };
        // SAFETY: a constant.
        let returning = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: this value owns the communicator, and the handler is MPI's.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(raw, returning) };
        MpiError::check("MPI_Comm_set_errhandler", code)?;
        notice_finalize()?;
        Ok(context)
    }

    #[inline(always)]
    pub(super) fn raw(&self) -> Result<MPI_Comm, MpiError> {
        check_running()?;
        Ok(self.raw)
    }

    pub(super) fn rank(&self) -> Result<c_int, MpiError> {
        check_running()?;
        let mut rank = 0;
        // SAFETY: MPI is running, and `rank` can be written to.
        let code = unsafe { ffi::MPI_Comm_rank(self.raw, &raw mut rank) };
        MpiError::check("MPI_Comm_rank", code)?;
        Ok(rank)
    }

    pub(super) fn size(&self) -> Result<c_int, MpiError> {
        check_running()?;
        let mut size = 0;
        // SAFETY: MPI is running, and `size` can be written to.
        let code = unsafe { ffi::MPI_Comm_size(self.raw, &raw mut size) };
        MpiError::check("MPI_Comm_size", code)?;
        Ok(size)
    }

    /// Sends at most 2^31 - 1 elements. MPI may wait until they are received; all known libraries send a message of at most
    /// a cache line without waiting for the receiver.
    #[inline(always)]
    pub(super) fn send<T: Equivalence>(&self, to: c_int, data: &[T]) -> Result<(), MpiError> {
        self.send_by(("MPI_Send", ffi::MPI_Send), to, data)
    }

    /// Sends, and waits until the receiver begins to receive.
    #[inline]
    pub(super) fn send_sync<T: Equivalence>(&self, to: c_int, data: &[T]) -> Result<(), MpiError> {
        self.send_by(("MPI_Ssend", ffi::MPI_Ssend), to, data)
    }

    #[inline(always)]
    fn send_by<T: Equivalence>(
        &self,
        (name, function): (&'static str, SendFunction),
        to: c_int,
        data: &[T],
    ) -> Result<(), MpiError> {
        check_running()?;
        let datatype = T::equivalent_datatype();
        let (buffer, length) = (data.as_ptr().cast(), data.len() as c_int);
        // SAFETY: MPI is running, and the buffer has that many elements.
        let code = unsafe { function(buffer, length, datatype.as_raw(), to, TAG, self.raw) };
        MpiError::check(name, code)
    }

    /// Receives at most 2^31 - 1 elements, and returns their number.
    ///
    /// They stay where MPI writes them: reading them back by wider loads would stall on store
    /// forwarding.
    #[inline(always)]
    pub(super) fn recv<T: Equivalence>(
        &self,
        from: c_int,
        data: &mut [T],
    ) -> Result<usize, MpiError> {
        check_running()?;
        let datatype = T::equivalent_datatype();
        let mut status = MaybeUninit::uninit();
        let (buffer, capacity) = (data.as_mut_ptr().cast(), data.len() as c_int);
        let (kind, place) = (datatype.as_raw(), status.as_mut_ptr());
        // SAFETY: MPI is running, and the buffer has that capacity.
        let code = unsafe { ffi::MPI_Recv(buffer, capacity, kind, from, TAG, self.raw, place) };
        MpiError::check("MPI_Recv", code)?;
        let mut count = 0;
        // SAFETY: the receive succeeded, so it wrote the status.
        let code = unsafe { ffi::MPI_Get_count(place, kind, &raw mut count) };
        MpiError::check("MPI_Get_count", code)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Creates the group of ranks with the same color; `None` for a rank without one.
    pub(super) fn split(&self, color: Option<c_int>, key: c_int) -> Result<Option<Self>, MpiError> {
        check_running()?;
        let mut raw = null_comm();
        // SAFETY: MPI is running, and `raw` can be written to.
        let code = unsafe {
            ffi::MPI_Comm_split(self.raw, color.unwrap_or(undefined()), key, &raw mut raw)
        };
        MpiError::check("MPI_Comm_split", code)?;
        let own = |_| Self::own(raw, ThreadClaim::new()?);
        color.map(own).transpose()
    }

    /// Creates the group of ranks that share memory.
    pub(super) fn split_by_node(&self, key: c_int) -> Result<Self, MpiError> {
        check_running()?;
        // SAFETY: a constant.
        let shared = unsafe { ffi::RSMPI_COMM_TYPE_SHARED };
        // SAFETY: a constant.
        let no_info = unsafe { ffi::RSMPI_INFO_NULL };
        let mut raw = null_comm();
        // SAFETY: MPI is running, and `raw` can be written to.
        let code =
            unsafe { ffi::MPI_Comm_split_type(self.raw, shared, key, no_info, &raw mut raw) };
        MpiError::check("MPI_Comm_split_type", code)?;
        Self::own(raw, ThreadClaim::new()?)
    }

    /// Creates a communicator of the same ranks in which this one has these neighbours.
    pub(super) fn with_neighbours(
        &self,
        sources: &[c_int],
        destinations: &[c_int],
    ) -> Result<Self, MpiError> {
        check_running()?;
        let equal = vec![1; sources.len().max(destinations.len())];
        // SAFETY: a constant.
        let no_info = unsafe { ffi::RSMPI_INFO_NULL };
        let mut raw = null_comm();
        // SAFETY: MPI is running; all lists are as long as stated, and `raw` can be written to.
        let code = unsafe {
            ffi::MPI_Dist_graph_create_adjacent(
                self.raw,
                sources.len() as c_int,
                sources.as_ptr(),
                equal.as_ptr(),
                destinations.len() as c_int,
                destinations.as_ptr(),
                equal.as_ptr(),
                no_info,
                0,
                &raw mut raw,
            )
        };
        MpiError::check("MPI_Dist_graph_create_adjacent", code)?;
        Self::own(raw, ThreadClaim::new()?)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // After `MPI_Finalize` the communicator no longer exists.
        if check_running().is_ok() {
            // An error could not be reported; the communicator is then leaked until the end of MPI.
            // SAFETY: MPI is running, and this value owns the communicator.
            unsafe { ffi::MPI_Comm_free(&raw mut self.raw) };
        }
    }
}
