//! Library that lets waiting ranks of MPICH yield their core, as those of Open MPI do with `mpi_yield_when_idle`.
//!
//! MPICH polls UCX while it waits, without end. Where ranks share cores, each message then takes a time slice of the
//! scheduler, and tests take ten times as long. Preloaded, this library yields the core after every poll that finds nothing.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "a function of another library is called")]

use std::ffi::{c_uint, c_void};
use std::mem::transmute;
use std::sync::LazyLock;

type Progress = unsafe extern "C" fn(*mut c_void) -> c_uint;

/// The function of UCX.
static PROGRESS: LazyLock<Option<Progress>> = LazyLock::new(|| {
    // SAFETY: the name ends with zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"ucp_worker_progress".as_ptr()) };
    // SAFETY: this is its type in `ucp/api/ucp.h`; a null pointer becomes `None`.
    unsafe { transmute::<*mut c_void, Option<Progress>>(found) }
});

/// Polls, and yields the core if nothing arrived.
///
/// # Safety
/// As for the function of UCX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ucp_worker_progress(worker: *mut c_void) -> c_uint {
    // SAFETY: the caller passes a worker of UCX.
    let arrived = PROGRESS.map_or(0, |progress| unsafe { progress(worker) });
    if arrived == 0 {
        std::thread::yield_now();
    }
    arrived
}
