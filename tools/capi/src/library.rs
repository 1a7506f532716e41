//! The library that a process uses: the one that it loaded first, if it contains several.
//!
//! A program that links the static library, a module that contains it, and a preloaded library can all be in one process. They find
//! the first whose function `downbeat_library` the whole process sees, and all do their work there: there is one set of timers and
//! one current clock. A copy that was loaded with `RTLD_LOCAL` finds that, but is not found.

use core::ffi::{c_char, c_double, c_int};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::failure::Failure;
use crate::identity::{DOWNBEAT_ABI, IDENTITY, serves};
#[cfg(feature = "mpi")]
use crate::objects::TeamHandle;
use crate::objects::{ClockHandle, Model, TimerHandle};
use crate::status::DOWNBEAT_ERROR_VERSION;

/// Lists the functions of a library for a macro, in the order of its table. Later versions add functions at the end.
macro_rules! functions {
    ($make:ident) => {
        $make! {
            Functions {
                downbeat_error_message() -> *const c_char;
                downbeat_clock_open_abi(*const c_char, *mut *mut ClockHandle, u32) -> c_int;
                downbeat_clock_close(*mut ClockHandle) -> c_int;
                downbeat_clock_now(*const ClockHandle, *mut i64) -> c_int;
                downbeat_clock_now_with_error(*const ClockHandle, *mut i64, *mut i64) -> c_int;
                downbeat_clock_now_with_bounds(*const ClockHandle, *mut i64, *mut i64) -> c_int;
                downbeat_clock_ticks(*const ClockHandle, *mut u64) -> c_int;
                downbeat_clock_convert(*const ClockHandle, u64, *mut i64) -> c_int;
                downbeat_clock_past(*const ClockHandle, u64, *mut i64) -> c_int;
                downbeat_clock_wait_until(*const ClockHandle, i64, *mut i64) -> c_int;
                downbeat_clock_time_of_day(*const ClockHandle, i64, *mut i64, *mut i64) -> c_int;
                downbeat_global_clock(*mut *mut ClockHandle) -> c_int;
                downbeat_wtime() -> c_double;
                downbeat_clock_model(*const ClockHandle, *mut *const Model) -> c_int;
                downbeat_model_read(*const Model) -> i64;
                downbeat_get_timer_abi(*const c_char, *mut *mut TimerHandle, u32) -> c_int;
                downbeat_start_timer(*const TimerHandle) -> c_int;
                downbeat_stop_timer(*const TimerHandle) -> c_int;
                downbeat_report_timers(*mut *mut c_char) -> c_int;
                downbeat_free_text(*mut c_char) -> c_int;
            }
        }
    };
}
pub(crate) use functions;

/// Lists the functions of a library that programs for MPI call.
#[cfg(feature = "mpi")]
macro_rules! mpi_functions {
    ($make:ident) => {
        $make! {
            MpiFunctions {
                downbeat_synchronize_abi(mpi::ffi::MPI_Comm, *const c_char, *mut *mut ClockHandle, u32) -> c_int;
                downbeat_resynchronize(*const ClockHandle, mpi::ffi::MPI_Comm) -> c_int;
                downbeat_timesync(mpi::ffi::MPI_Comm) -> c_int;
                downbeat_report_timers_over(mpi::ffi::MPI_Comm, *mut *mut c_char) -> c_int;
                downbeat_team_open(*const ClockHandle, mpi::ffi::MPI_Comm, *mut *mut TeamHandle) -> c_int;
                downbeat_keep(*const TeamHandle, i64, *mut c_int) -> c_int;
                downbeat_harmonize(*const TeamHandle, i64, *mut i64) -> c_int;
                downbeat_team_close(*mut TeamHandle) -> c_int;
            }
        }
    };
}
#[cfg(feature = "mpi")]
pub(crate) use mpi_functions;

macro_rules! declare {
    ($name:ident { $($function:ident($($argument:ty),*) -> $result:ty;)* }) => {
        #[derive(Debug)]
        #[repr(C)]
        pub(crate) struct $name {
            $(pub(crate) $function: unsafe extern "C" fn($($argument),*) -> $result,)*
        }
    };
}

functions!(declare);
#[cfg(feature = "mpi")]
mpi_functions!(declare);

/// Functions of a loaded library. The first two members stay what they are.
#[derive(Debug)]
#[repr(C)]
pub struct Library {
    /// `DOWNBEAT_ABI` of the library.
    pub(crate) version: u32,
    /// Size of this struct in bytes.
    pub(crate) size: u32,
    /// Address that differs from that of other copies.
    pub(crate) identity: &'static u8,
    pub(crate) keep_message: unsafe extern "C" fn(*const c_char),
    pub(crate) functions: Functions,
    pub(crate) mpi: MpiFunctions,
}

/// The library without MPI has no such functions.
#[cfg(not(feature = "mpi"))]
pub(crate) type MpiFunctions = ();

/// Does a call in the library that the process uses, if that is another one.
macro_rules! in_first_library {
    ($function:ident($($argument:expr),*)) => {
        if let Some(first) = crate::library::first() {
            // SAFETY: the caller guarantees what the function requires.
            return unsafe { (first.functions.$function)($($argument),*) };
        }
    };
}
pub(crate) use in_first_library;

/// The first library, once it was looked up; [`OWN`] if this is it.
static FIRST: AtomicPtr<Library> = AtomicPtr::new(null_mut());

/// No address of a table.
const OWN: *mut Library = without_provenance_mut(1);

/// Returns the library that the process uses, unless this is it.
#[inline(always)]
pub(crate) fn first() -> Option<&'static Library> {
    let first = FIRST.load(Ordering::Relaxed);
    if first == OWN { None } else { other(first) }
}

#[cold]
fn other(mut first: *mut Library) -> Option<&'static Library> {
    if first.is_null() {
        first = match find_other() {
            // It is at least as old as this one.
            Some(found) if serves(found.version, DOWNBEAT_ABI) => {
                core::ptr::from_ref(found).cast_mut()
            }
            // Calls that open something refuse to work beside another version.
            _ => OWN,
        };
        FIRST.store(first, Ordering::Relaxed);
    }
    // SAFETY: tables of functions live as long as the process, which does not unload the library it uses.
    (first != OWN).then(|| unsafe { &*first })
}

/// Finds the library that was loaded first, unless this is it: all copies look it up in the same order.
fn find_other() -> Option<&'static Library> {
    // SAFETY: the name ends with a NUL.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"downbeat_library".as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: it is this function of a library, which has had this type since the first version.
    let function: extern "C" fn() -> *const Library = unsafe { core::mem::transmute(function) };
    // SAFETY: it returns NULL or a table.
    let found = unsafe { function().as_ref() }?;
    (!core::ptr::eq(found.identity, &raw const IDENTITY)).then_some(found)
}

/// Checks that the program was compiled with a header that this library serves, and uses no other version of the library.
pub(crate) fn check_version(header: u32) -> Result<(), Failure> {
    let [program, library] = [header, DOWNBEAT_ABI].map(parts);
    let why = if !serves(DOWNBEAT_ABI, header) {
        format!(
            "the program was compiled with version {program} of downbeat.h, and the library has version {library}"
        )
    } else if first().is_none()
        && let Some(other) = find_other()
    {
        let other = parts(other.version);
        format!(
            "the process contains version {other} of the library, too, which this one, version {library}, cannot use"
        )
    } else {
        return Ok(());
    };
    Err(Failure::new(DOWNBEAT_ERROR_VERSION, why))
}

/// Writes a version as people do.
fn parts(version: u32) -> String {
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// Returns the functions for MPI of the library that the process uses, unless this is it.
#[cfg(feature = "mpi")]
pub(crate) fn first_with_mpi() -> Result<Option<&'static MpiFunctions>, Failure> {
    match first() {
        None => Ok(None),
        Some(first) if first.size as usize >= size_of::<Library>() => Ok(Some(&first.mpi)),
        Some(_) => Err(Failure::new(
            DOWNBEAT_ERROR_VERSION,
            "the program links libdownbeat, which has no MPI, and another part of it libdownbeat_mpi: link only the latter",
        )),
    }
}
