//! What OTF2 says of its failures, instead of printing it.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Once;

use super::Otf2Error;
use super::ffi;

thread_local! {
    /// The first failure since it was last asked for: those that follow from it say less.
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
    // Those below are warnings.
    if code > ffi::SUCCESS && FIRST.get() == ffi::SUCCESS {
        FIRST.set(code);
    }
    code
}

/// From now on OTF2 prints nothing, in the whole process.
pub(super) fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function may be called at any time, by any thread, and uses no user data.
        unsafe { ffi::OTF2_Error_RegisterCallback(note, core::ptr::null_mut()) };
    });
    FIRST.set(ffi::SUCCESS);
}

/// The failure of what was done to a file since [`collect`].
pub(super) fn error(path: &Path, code: c_int) -> Otf2Error {
    let code = Some(FIRST.replace(ffi::SUCCESS))
        .filter(|&first| first != ffi::SUCCESS)
        .unwrap_or(code);
    // SAFETY: has no conditions.
    let description = unsafe { ffi::OTF2_Error_GetDescription(code) };
    let why = if description.is_null() {
        format!("error {code}")
    } else {
        // SAFETY: descriptions are constants of the library, which end with a zero.
        unsafe { CStr::from_ptr(description) }
            .to_string_lossy()
            .into_owned()
    };
    Otf2Error::Unreadable {
        path: path.to_owned(),
        why,
    }
}

/// Whether that worked.
pub(super) fn check(path: &Path, code: c_int) -> Result<(), Otf2Error> {
    if code == ffi::SUCCESS {
        Ok(())
    } else {
        Err(error(path, code))
    }
}
