//! Detection of `MPI_Finalize`, after which MPI may not be called.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use mpi::ffi::{self, MPI_Comm};

use super::error::MpiError;

const SUCCESS: c_int = ffi::MPI_SUCCESS as c_int;

/// True after `MPI_Finalize`. Checked before every message, where a call of `MPI_Finalized` would
/// take a hundredth of the round trip.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Checks that MPI still runs. It did when a communicator was created.
#[inline]
pub(super) fn check_running() -> Result<(), MpiError> {
    if ENDED.load(Ordering::Relaxed) {
        Err(MpiError::Finalized)
    } else {
        Ok(())
    }
}

/// Registers a hook for the end of MPI, which must be running.
///
/// `MPI_Finalize` first deletes the attributes of `MPI_COMM_SELF` (MPI 4.0, section 11.2.4).
pub(super) fn notice_finalize() -> Result<(), MpiError> {
    static REGISTERED: Mutex<bool> = Mutex::new(false);
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*registered {
        register()?;
        *registered = true;
    }
    Ok(())
}

fn register() -> Result<(), MpiError> {
    let mut key = 0;
    // SAFETY: the functions live as long as the process, and `key` can be written to.
    let code =
        unsafe { ffi::MPI_Comm_create_keyval(Some(copy), Some(end), &raw mut key, null_mut()) };
    MpiError::check("MPI_Comm_create_keyval", code)?;
    // SAFETY: a constant.
    let own = unsafe { ffi::RSMPI_COMM_SELF };
    // SAFETY: MPI is running, and the key is a new one.
    let code = unsafe { ffi::MPI_Comm_set_attr(own, key, null_mut()) };
    MpiError::check("MPI_Comm_set_attr", code)?;
    // It stays until the attribute is deleted.
    // SAFETY: as above.
    let code = unsafe { ffi::MPI_Comm_free_keyval(&raw mut key) };
    MpiError::check("MPI_Comm_free_keyval", code)
}

/// Copies no attribute to duplicates of the communicator.
unsafe extern "C" fn copy(
    _: MPI_Comm,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    is_copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives a place for the answer.
    unsafe { is_copied.write(0) };
    SUCCESS
}

unsafe extern "C" fn end(_: MPI_Comm, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    ENDED.store(true, Ordering::Relaxed);
    SUCCESS
}
