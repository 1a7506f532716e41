//! Collects error messages of OTF2, which would otherwise print them.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Once;

use super::Otf2Error;
use super::ffi;

thread_local! {
    /// First error since the last query; those that follow from it are less specific.
    static FIRST: Cell<c_int> = const { Cell::new(ffi::SUCCESS) };
}

extern "C" fn note(
    _data: *mut c_void,
    _file: *const c_char,
    _line: u64,
    _function: *const c_char,
    code: c_int,
    _format: *const c_char,
    _arguments: *mut c_void,
) -> c_int {
    // Negative codes are warnings.
    if code > ffi::SUCCESS && FIRST.get() == ffi::SUCCESS {
        FIRST.set(code);
    }
    code
}

/// Stops OTF2 from printing messages, in the whole process, and forgets earlier errors.
pub(super) fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function may be called at any time from any thread, and uses no user data.
        unsafe { ffi::OTF2_Error_RegisterCallback(note, core::ptr::null_mut()) };
    });
    FIRST.set(ffi::SUCCESS);
}

/// Returns the error of an operation on a file since [`collect`].
pub(super) fn error(path: &Path, code: c_int) -> Otf2Error {
    let code = Some(FIRST.replace(ffi::SUCCESS))
        .filter(|&first| first != ffi::SUCCESS)
        .unwrap_or(code);
    // SAFETY: has no preconditions.
    let description = unsafe { ffi::OTF2_Error_GetDescription(code) };
    let why = if description.is_null() {
        format!("error {code}")
    } else {
        // SAFETY: descriptions are static strings of the library that end with a zero byte.
        unsafe { CStr::from_ptr(description) }
            .to_string_lossy()
            .into_owned()
    };
    Otf2Error::Unreadable {
        path: path.to_owned(),
        why,
    }
}

/// Checks a status code.
pub(super) fn check(path: &Path, code: c_int) -> Result<(), Otf2Error> {
    if code == ffi::SUCCESS {
        Ok(())
    } else {
        Err(error(path, code))
    }
}
