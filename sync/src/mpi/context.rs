//! The calls of MPI, each with its return code looked at.

use core::ffi::c_int;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use mpi::environment::{self, Threading};
use mpi::ffi::{self, MPI_Comm};
use mpi::raw::AsRaw;
use mpi::traits::{Communicator, Equivalence};

use super::MpiError;
use super::end::{check_running, watch};
use crate::Words;
use crate::payload::MAX_WORDS;

/// A communicator that nobody else uses, and that returns its errors. Freed when dropped.
#[derive(Debug)]
pub(super) struct Context {
    raw: MPI_Comm,
    /// The communicator is for the thread that made it.
    one_thread: PhantomData<*const ()>,
}

/// Order is all that tells messages apart.
const TAG: c_int = 0;

/// Whether this thread may call MPI.
pub(super) fn check_usable() -> Result<(), MpiError> {
    if !environment::is_initialized() {
        return Err(MpiError::NotInitialized);
    }
    if environment::is_finalized() {
        return Err(MpiError::Finalized);
    }
    if environment::threading_support() >= Threading::Serialized {
        return Ok(());
    }
    let mut main = 0;
    // SAFETY: MPI is running, any thread may ask this, and `main` can be written to.
    let code = unsafe { ffi::MPI_Is_thread_main(&raw mut main) };
    MpiError::check("MPI_Is_thread_main", code)?;
    if main == 0 {
        Err(MpiError::OtherThread)
    } else {
        Ok(())
    }
}

/// The type of what is sent.
#[inline]
fn word() -> ffi::MPI_Datatype {
    u64::equivalent_datatype().as_raw()
}

fn byte() -> ffi::MPI_Datatype {
    u8::equivalent_datatype().as_raw()
}

fn undefined() -> c_int {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_UNDEFINED }
}

fn nothing() -> MPI_Comm {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_COMM_NULL }
}

impl Context {
    pub(super) fn duplicate(comm: &impl Communicator) -> Result<Self, MpiError> {
        // SAFETY: a value of this type holds a communicator.
        unsafe { Self::duplicate_raw(comm.as_raw()) }
    }

    /// # Safety
    /// MPI is running, and `comm` is a communicator.
    pub(super) unsafe fn duplicate_raw(comm: MPI_Comm) -> Result<Self, MpiError> {
        let mut between_groups = 0;
        // SAFETY: the caller vouches for the communicator, and `between_groups` can be written to.
        let code = unsafe { ffi::MPI_Comm_test_inter(comm, &raw mut between_groups) };
        MpiError::check("MPI_Comm_test_inter", code)?;
        if between_groups != 0 {
            return Err(MpiError::InterCommunicator);
        }
        let mut raw = nothing();
        // SAFETY: as above, with `raw`.
        let code = unsafe { ffi::MPI_Comm_dup(comm, &raw mut raw) };
        MpiError::check("MPI_Comm_dup", code)?;
        Self::own(raw)
    }

    /// Takes over a communicator that was just made.
    fn own(raw: MPI_Comm) -> Result<Self, MpiError> {
        watch();
        let context = Self {
            raw,
            one_thread: PhantomData,
        };
        // SAFETY: a constant.
        let returning = unsafe { ffi::RSMPI_ERRORS_RETURN };
        // SAFETY: the communicator is this one's own, and the handler is MPI's.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(raw, returning) };
        MpiError::check("MPI_Comm_set_errhandler", code)?;
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

    /// Messages of at most a cache line leave at once with every MPI library there is.
    #[inline(always)]
    pub(super) fn send(&self, to: c_int, words: &[u64]) -> Result<(), MpiError> {
        check_running()?;
        let length = words.len() as c_int;
        // SAFETY: MPI is running, and there are as many words as it is told.
        let code =
            unsafe { ffi::MPI_Send(words.as_ptr().cast(), length, word(), to, TAG, self.raw) };
        MpiError::check("MPI_Send", code)
    }

    #[inline]
    pub(super) fn send_sync(&self, to: c_int, words: &[u64]) -> Result<(), MpiError> {
        check_running()?;
        let length = words.len() as c_int;
        // SAFETY: MPI is running, and there are as many words as it is told.
        let code =
            unsafe { ffi::MPI_Ssend(words.as_ptr().cast(), length, word(), to, TAG, self.raw) };
        MpiError::check("MPI_Ssend", code)
    }

    /// Returns how many words came.
    ///
    /// They stay where MPI writes them: a wider copy at once would have to wait for that.
    #[inline(always)]
    pub(super) fn recv(&self, from: c_int, words: &mut Words) -> Result<usize, MpiError> {
        check_running()?;
        let mut status = MaybeUninit::uninit();
        let (buffer, room) = (words.as_mut_ptr().cast(), MAX_WORDS as c_int);
        // SAFETY: MPI is running, and there is as much room as it is told.
        let code = unsafe {
            ffi::MPI_Recv(
                buffer,
                room,
                word(),
                from,
                TAG,
                self.raw,
                status.as_mut_ptr(),
            )
        };
        MpiError::check("MPI_Recv", code)?;
        // SAFETY: the receive succeeded, so it wrote the status.
        unsafe { count(&status, word()) }
    }

    /// As `send`; at most 2^31 - 1 bytes. MPI may wait until they are received.
    pub(super) fn send_bytes(&self, to: c_int, bytes: &[u8]) -> Result<(), MpiError> {
        check_running()?;
        let length = bytes.len() as c_int;
        // SAFETY: MPI is running, and there are as many bytes as it is told.
        let code =
            unsafe { ffi::MPI_Send(bytes.as_ptr().cast(), length, byte(), to, TAG, self.raw) };
        MpiError::check("MPI_Send", code)
    }

    /// As `recv`; at most 2^31 - 1 bytes. Returns how many came.
    pub(super) fn recv_bytes(&self, from: c_int, bytes: &mut [u8]) -> Result<usize, MpiError> {
        check_running()?;
        let mut status = MaybeUninit::uninit();
        let (buffer, room) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        // SAFETY: MPI is running, and there is as much room as it is told.
        let code = unsafe {
            ffi::MPI_Recv(
                buffer,
                room,
                byte(),
                from,
                TAG,
                self.raw,
                status.as_mut_ptr(),
            )
        };
        MpiError::check("MPI_Recv", code)?;
        // SAFETY: the receive succeeded, so it wrote the status.
        unsafe { count(&status, byte()) }
    }

    /// The group of those with the same color; nothing for this rank if it has none.
    pub(super) fn split(&self, color: Option<c_int>, key: c_int) -> Result<Option<Self>, MpiError> {
        check_running()?;
        let mut raw = nothing();
        // SAFETY: MPI is running, and `raw` can be written to.
        let code = unsafe {
            ffi::MPI_Comm_split(self.raw, color.unwrap_or(undefined()), key, &raw mut raw)
        };
        MpiError::check("MPI_Comm_split", code)?;
        color.map(|_| Self::own(raw)).transpose()
    }

    /// The group of those that share memory.
    pub(super) fn split_by_node(&self, key: c_int) -> Result<Self, MpiError> {
        check_running()?;
        // SAFETY: a constant.
        let shared = unsafe { ffi::RSMPI_COMM_TYPE_SHARED };
        // SAFETY: a constant.
        let no_info = unsafe { ffi::RSMPI_INFO_NULL };
        let mut raw = nothing();
        // SAFETY: MPI is running, and `raw` can be written to.
        let code =
            unsafe { ffi::MPI_Comm_split_type(self.raw, shared, key, no_info, &raw mut raw) };
        MpiError::check("MPI_Comm_split_type", code)?;
        Self::own(raw)
    }
}

/// How many of this type came.
///
/// # Safety
/// MPI wrote the status.
#[inline(always)]
unsafe fn count(
    status: &MaybeUninit<ffi::MPI_Status>,
    of: ffi::MPI_Datatype,
) -> Result<usize, MpiError> {
    let mut count = 0;
    // SAFETY: the caller vouches for the status, and `count` can be written to.
    let code = unsafe { ffi::MPI_Get_count(status.as_ptr(), of, &raw mut count) };
    MpiError::check("MPI_Get_count", code)?;
    // Negative for what is not made of that; it would take as much room as there is.
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

impl Drop for Context {
    fn drop(&mut self) {
        // After the end of MPI there is no communicator any more.
        if check_running().is_ok() {
            // Nobody is left to hear of a failure; the communicator is then lost until the end of MPI.
            // SAFETY: MPI is running, and the communicator is this one's own.
            unsafe { ffi::MPI_Comm_free(&raw mut self.raw) };
        }
    }
}
