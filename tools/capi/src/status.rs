//! Return codes.

use core::ffi::{CStr, c_char, c_int};

/// The call did what it promises.
pub const DOWNBEAT_OK: c_int = 0;
/// A pointer is NULL that must not be.
pub const DOWNBEAT_ERROR_NULL: c_int = 1;
/// A handle was closed, or never was one.
pub const DOWNBEAT_ERROR_HANDLE: c_int = 2;
/// A name, a label, a number or an environment variable is not one of those that are allowed.
pub const DOWNBEAT_ERROR_ARGUMENT: c_int = 3;
/// This machine does not have the clock, or it cannot be calibrated.
pub const DOWNBEAT_ERROR_UNAVAILABLE: c_int = 4;
/// No clock was synchronized yet.
pub const DOWNBEAT_ERROR_NOT_SYNCHRONIZED: c_int = 5;
/// MPI is not initialized or already finalized, may not be called by this thread, or failed.
pub const DOWNBEAT_ERROR_MPI: c_int = 6;
/// The synchronization failed on a rank, or the ranks disagree about the arguments. All ranks get this.
pub const DOWNBEAT_ERROR_RANKS: c_int = 7;
/// The program was compiled with the header of another version, or loads another version of the library as well.
pub const DOWNBEAT_ERROR_VERSION: c_int = 8;
/// The call comes too early or too late.
pub const DOWNBEAT_ERROR_STATE: c_int = 9;
/// A fault of the library itself, which is worth a report.
pub const DOWNBEAT_ERROR_INTERNAL: c_int = 10;

const NAMES: [&CStr; 11] = [
    c"DOWNBEAT_OK",
    c"DOWNBEAT_ERROR_NULL",
    c"DOWNBEAT_ERROR_HANDLE",
    c"DOWNBEAT_ERROR_ARGUMENT",
    c"DOWNBEAT_ERROR_UNAVAILABLE",
    c"DOWNBEAT_ERROR_NOT_SYNCHRONIZED",
    c"DOWNBEAT_ERROR_MPI",
    c"DOWNBEAT_ERROR_RANKS",
    c"DOWNBEAT_ERROR_VERSION",
    c"DOWNBEAT_ERROR_STATE",
    c"DOWNBEAT_ERROR_INTERNAL",
];

/// Returns the name of a code, as `DOWNBEAT_ERROR_NULL`; never NULL. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn downbeat_status_name(status: c_int) -> *const c_char {
    let name = usize::try_from(status).ok().and_then(|at| NAMES.get(at));
    name.map_or(c"unknown status", |name| name).as_ptr()
}
