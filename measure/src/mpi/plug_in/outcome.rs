//! Outcome of setting up an operation on all ranks, of which one that failed may have left others waiting for it.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;
use std::thread;
use std::time::{Duration, Instant};

use downbeat_sync::{CommError, MpiError};
use mpi::ffi;

use crate::mpi::calls::{no_request, wait};
use crate::mpi::group::MpiGroup;

/// Time that a rank that failed gives the others.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until all ranks have left the code of the plug-in. Returns false if this rank failed and the others do not come: they may wait for
/// it in there, where nothing can wake them.
pub(super) fn all_have_returned(group: &MpiGroup, has_failed: bool) -> Result<bool, CommError> {
    let comm = group.raw()?;
    let mut request = no_request();
    // SAFETY: MPI is running, the communicator is valid, and the request is completed below, or the job ends.
    let code = unsafe { ffi::MPI_Ibarrier(comm, &raw mut request) };
    MpiError::check("MPI_Ibarrier", code)?;
    if !has_failed {
        wait(request)?;
        return Ok(true);
    }
    let began = Instant::now();
    loop {
        let mut done: c_int = 0;
        // SAFETY: a constant.
        let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
        // SAFETY: the request is that of above, and the status is ignored.
        let code = unsafe { ffi::MPI_Test(&raw mut request, &raw mut done, no_status) };
        MpiError::check("MPI_Test", code)?;
        if done != 0 {
            return Ok(true);
        }
        if began.elapsed() > PATIENCE {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}
