//! Persistent collectives of MPI 4: requests that are made once, and started by every call.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_void;
use std::ffi::CString;

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Request};

use super::calls::CallArguments;

/// Makes the request of an operation, by the function of the library at this address.
///
/// # Safety
/// As for [`MpiCall`](super::calls::MpiCall), until the request is freed; the address is that of the function.
pub(super) type MakeRequest = unsafe fn(&CallArguments, *mut c_void) -> Result<(), MpiError>;

/// Function that makes the request of an operation. Libraries before MPI 4 have it by another name, or not at all, and their headers
/// do not declare it: it is looked up when the program runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct PersistentCall {
    /// Names in MPI 4, and before.
    pub(super) functions: [&'static str; 2],
    /// Number of requests for each root.
    pub(super) requests: usize,
    pub(super) make: MakeRequest,
}

/// Returns the address of a function; `None` if the library lacks it.
pub(super) fn find(name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a NUL.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    Some(address).filter(|address| !address.is_null())
}

impl PersistentCall {
    /// Returns the address of the function; `None` if the library lacks it.
    pub(super) fn find(&self) -> Option<*mut c_void> {
        self.functions.into_iter().find_map(find)
    }

    /// Name of the function in MPI 4.
    pub(super) fn function(&self) -> &'static str {
        self.functions[0]
    }
}

/// Starts the request, and waits for it.
///
/// # Safety
/// As for [`MpiCall`](super::calls::MpiCall); the request was made, and is not active.
pub(super) unsafe fn start_and_wait(with: &CallArguments) -> Result<(), MpiError> {
    // SAFETY: guaranteed by the caller.
    unsafe { start(with.requests) }?;
    // SAFETY: as above.
    unsafe { wait(with.requests) }
}

/// # Safety
/// MPI is running, and the request was made and is not active.
#[inline(always)]
pub(super) unsafe fn start(request: *mut MPI_Request) -> Result<(), MpiError> {
    // SAFETY: guaranteed by the caller.
    let code = unsafe { ffi::MPI_Start(request) };
    MpiError::check("MPI_Start", code)
}

/// # Safety
/// MPI is running, and the request was made.
#[inline(always)]
pub(super) unsafe fn wait(request: *mut MPI_Request) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
    // SAFETY: guaranteed by the caller.
    let code = unsafe { ffi::MPI_Wait(request, no_status) };
    MpiError::check("MPI_Wait", code)
}
