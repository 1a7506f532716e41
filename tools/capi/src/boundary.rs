//! The boundary that no panic crosses, and the message of the last failure.

use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_int};
use std::ffi::CString;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::failure::Failure;
use crate::library::{first, in_first_library};
use crate::status::{DOWNBEAT_ERROR_INTERNAL, DOWNBEAT_OK};

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns the reason of the last failure in this thread, or an empty text; never NULL. The text is valid until the next call
/// that fails in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn downbeat_error_message() -> *const c_char {
    in_first_library!(downbeat_error_message());
    MESSAGE
        .try_with(|message| message.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// Does the work of a call, and keeps its failures and its panics from the caller.
pub(crate) fn boundary(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    silence_panics();
    let outer = INSIDE.try_with(|inside| inside.replace(true));
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    if let Ok(outer) = outer {
        let _ = INSIDE.try_with(|inside| inside.set(outer));
    }
    match result {
        Ok(Ok(())) => DOWNBEAT_OK,
        Ok(Err(failure)) => report(&failure),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = text.unwrap_or_default();
            report(&Failure::new(
                DOWNBEAT_ERROR_INTERNAL,
                format_args!("a fault of the library: {why}"),
            ))
        }
    }
}

/// Does the work of a call that all ranks make, for their clocks.
#[cfg(feature = "mpi")]
pub(crate) fn boundary_of_all(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    boundary(|| crate::tracer::as_own(c"(clock synchronization)", work))
}

/// Keeps the message of a failure for this thread, and returns its status.
#[cold]
pub(crate) fn report(failure: &Failure) -> c_int {
    let text = CString::new(failure.message.replace('\0', "?")).unwrap_or_default();
    let keep = first().map_or(keep_message as unsafe extern "C" fn(_), |first| {
        first.keep_message
    });
    // SAFETY: a text.
    unsafe { keep(text.as_ptr()) };
    failure.status
}

/// Keeps a message for this thread.
///
/// # Safety
/// It must be a text.
pub(crate) unsafe extern "C" fn keep_message(text: *const c_char) {
    // SAFETY: the caller guarantees it.
    let text = unsafe { core::ffi::CStr::from_ptr(text) }.to_owned();
    let _ = MESSAGE.try_with(|message| message.replace(text));
}

/// Prints no message of a panic inside a call. Others are printed as before.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            if !INSIDE.try_with(Cell::get).unwrap_or(false) {
                before(why);
            }
        }));
    });
}

/// Writes a result to the place that the caller gave.
///
/// # Safety
/// The place must be NULL or one that can be written to.
pub(crate) unsafe fn write<T>(place: *mut T, name: &str, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: the caller guarantees that it can be written to.
    unsafe { place.write(value) };
    Ok(())
}

/// Checks that a place for a result is not NULL, before work that takes long.
pub(crate) fn check_place<T>(place: *mut T, name: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::null(name));
    }
    Ok(())
}

/// Reads a text of the caller; `None` if it is NULL.
///
/// # Safety
/// The text must be NULL or end with a NUL.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees that it ends with a NUL.
    let text = unsafe { core::ffi::CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| {
        let why = format!("{name} is not UTF-8");
        Failure::new(crate::status::DOWNBEAT_ERROR_ARGUMENT, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ffi::CStr;

    fn message() -> String {
        // SAFETY: the library returns a text that ends with a NUL.
        let text = unsafe { CStr::from_ptr(downbeat_error_message()) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_is_a_status_and_a_message() {
        let status = boundary(|| panic!("no {}", 7));
        assert_eq!(
            (status, &*message()),
            (DOWNBEAT_ERROR_INTERNAL, "a fault of the library: no 7")
        );
        // A call that succeeds keeps the message.
        assert_eq!(boundary(|| Ok(())), DOWNBEAT_OK);
        assert!(message().ends_with("no 7"));
        let status = boundary(|| Err(Failure::new(3, "a\0b")));
        assert_eq!((status, &*message()), (3, "a?b"));
    }

    #[test]
    fn every_status_has_a_name() {
        for status in 0..=10 {
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(crate::status::downbeat_status_name(status)) };
            assert!(name.to_string_lossy().starts_with("DOWNBEAT_"));
        }
    }
}
