//! The library that a process uses: the one that it loaded first, if it contains several.
//!
//! A program that links the static library, a module that contains it, and a preloaded library can all be in one process. They find
//! each other through [`downbeat_library`], and all do their work in the first: there is one set of timers and one current clock.

use core::ffi::{c_char, c_double, c_int};
use core::mem::size_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::boundary::{Failure, downbeat_error_message, keep_message};
use crate::clock::*;
use crate::status::DOWNBEAT_ERROR_VERSION;
use crate::timers::*;

/// Declares the functions of a library, and its table of them.
macro_rules! library {
    ($($function:ident: $type:ty,)*) => {
        /// Functions of a loaded library.
        ///
        /// Later versions of the interface add functions at the end. The first two members stay what they are.
        #[derive(Debug)]
        #[repr(C)]
        pub struct Library {
            /// `DOWNBEAT_ABI` of the library.
            version: u32,
            /// Size of this struct in bytes.
            size: u32,
            $(pub(crate) $function: $type,)*
            pub(crate) mpi: MpiFunctions,
        }

        static OWN: Library = Library {
            version: DOWNBEAT_ABI,
            size: size_of::<Library>() as u32,
            $($function,)*
            mpi: MPI,
        };
    };
}

library! {
    keep_message: unsafe extern "C" fn(*const c_char),
    downbeat_error_message: unsafe extern "C" fn() -> *const c_char,
    downbeat_clock_open_abi: unsafe extern "C" fn(*const c_char, *mut *mut ClockHandle, u32) -> c_int,
    downbeat_clock_close: unsafe extern "C" fn(*mut ClockHandle) -> c_int,
    downbeat_clock_now: unsafe extern "C" fn(*const ClockHandle, *mut i64) -> c_int,
    downbeat_clock_now_with_error: unsafe extern "C" fn(*const ClockHandle, *mut i64, *mut i64) -> c_int,
    downbeat_clock_ticks: unsafe extern "C" fn(*const ClockHandle, *mut u64) -> c_int,
    downbeat_clock_convert: unsafe extern "C" fn(*const ClockHandle, u64, *mut i64) -> c_int,
    downbeat_clock_past: unsafe extern "C" fn(*const ClockHandle, u64, *mut i64) -> c_int,
    downbeat_clock_wait_until: unsafe extern "C" fn(*const ClockHandle, i64, *mut i64) -> c_int,
    downbeat_clock_time_of_day: unsafe extern "C" fn(*const ClockHandle, i64, *mut i64, *mut i64) -> c_int,
    downbeat_global_clock: unsafe extern "C" fn(*mut *mut ClockHandle) -> c_int,
    downbeat_wtime: unsafe extern "C" fn() -> c_double,
    downbeat_clock_model: unsafe extern "C" fn(*const ClockHandle, *mut *const Model) -> c_int,
    downbeat_model_read: unsafe extern "C" fn(*const Model) -> i64,
    downbeat_get_timer_abi: unsafe extern "C" fn(*const c_char, *mut *mut TimerHandle, u32) -> c_int,
    downbeat_start_timer: unsafe extern "C" fn(*const TimerHandle) -> c_int,
    downbeat_stop_timer: unsafe extern "C" fn(*const TimerHandle) -> c_int,
    downbeat_report_timers: unsafe extern "C" fn(*mut *mut c_char) -> c_int,
    downbeat_free_text: unsafe extern "C" fn(*mut c_char) -> c_int,
}

#[cfg(feature = "mpi")]
pub(crate) use crate::mpi::{MPI, MpiFunctions};

/// The library without MPI has no such functions.
#[cfg(not(feature = "mpi"))]
type MpiFunctions = ();
#[cfg(not(feature = "mpi"))]
const MPI: MpiFunctions = ();

/// Does a call in the library that the process uses, if that is another one.
macro_rules! in_first_library {
    ($function:ident($($argument:expr),*)) => {
        if let Some(first) = crate::library::first() {
            // SAFETY: the caller guarantees what the function requires.
            return unsafe { (first.$function)($($argument),*) };
        }
    };
}
pub(crate) use in_first_library;

/// Returns the functions of this library, for others in the same process. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn downbeat_library() -> *const Library {
    &raw const OWN
}

/// Makes the mark of objects of one kind that this copy of the library made: it alone works on them.
#[inline(always)]
pub(crate) fn mark(kind: u64) -> u64 {
    kind ^ (&raw const OWN).addr() as u64
}

/// The first library, once it was looked up.
static FIRST: AtomicPtr<Library> = AtomicPtr::new(null_mut());

/// Returns the library that the process uses, unless this is it.
#[inline(always)]
pub(crate) fn first() -> Option<&'static Library> {
    let first = FIRST.load(Ordering::Relaxed).cast_const();
    if first == &raw const OWN {
        return None;
    }
    other(first)
}

#[cold]
fn other(mut first: *const Library) -> Option<&'static Library> {
    if first.is_null() {
        first = match find() {
            Some(found)
                if found.version >> 16 == DOWNBEAT_ABI >> 16 && found.version >= DOWNBEAT_ABI =>
            {
                found
            }
            // Calls that open something refuse to work beside another version.
            _ => &raw const OWN,
        };
        FIRST.store(first.cast_mut(), Ordering::Relaxed);
    }
    // SAFETY: tables of functions live as long as the process, which does not unload the library it uses.
    (first != &raw const OWN).then(|| unsafe { &*first })
}

/// Finds the library that was loaded first: all look it up in the same order.
fn find() -> Option<&'static Library> {
    // SAFETY: the name ends with a NUL.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"downbeat_library".as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: it is this function in another library, which has had this type since the first version.
    let function: extern "C" fn() -> *const Library = unsafe { core::mem::transmute(function) };
    // SAFETY: it returns NULL or a table.
    unsafe { function().as_ref() }
}

/// Checks that the process uses no other version of the library.
pub(crate) fn check_only_version() -> Result<(), Failure> {
    match find() {
        Some(found) if first().is_none() && !core::ptr::eq(found, &raw const OWN) => {
            let why = format_args!(
                "the process contains version {}.{} of the library, too, which this one, version {}.{}, cannot use",
                found.version >> 16,
                found.version & 0xffff,
                DOWNBEAT_ABI >> 16,
                DOWNBEAT_ABI & 0xffff
            );
            Err(Failure::new(DOWNBEAT_ERROR_VERSION, why))
        }
        _ => Ok(()),
    }
}

/// Returns the functions for MPI of the library that the process uses, unless this is it.
#[cfg(feature = "mpi")]
pub(crate) fn first_with_mpi() -> Result<Option<&'static MpiFunctions>, Failure> {
    match first() {
        None => Ok(None),
        Some(first) if first.size >= OWN.size => Ok(Some(&first.mpi)),
        Some(_) => Err(Failure::new(
            DOWNBEAT_ERROR_VERSION,
            "the program links libdownbeat, which has no MPI, and another part of it libdownbeat_mpi: link only the latter",
        )),
    }
}
