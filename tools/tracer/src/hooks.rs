//! Reports of libdownbeat to the tracer: regions of the program, and sessions in which clocks were compared.

use core::ffi::{CStr, c_char};
use std::ffi::CString;

use crate::thread::Thread;
use crate::{communicators, process, synchronize};

/// Functions for libdownbeat, which has the same type.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TracerHooks {
    /// Size of this struct in bytes; later versions add functions at the end.
    size: usize,
    region: unsafe extern "C" fn(*const c_char) -> u32,
    enter: extern "C" fn(u32),
    leave: extern "C" fn(u32),
    sample: extern "C" fn(u64, i64, u32),
    begin_own: extern "C" fn(u32) -> bool,
    end_own: extern "C" fn(u32),
}

static HOOKS: TracerHooks = TracerHooks {
    size: size_of::<TracerHooks>(),
    region,
    enter,
    leave,
    sample,
    begin_own,
    end_own,
};

/// Returns the functions, or NULL if this process is not traced.
#[unsafe(no_mangle)]
extern "C" fn downbeat_tracer() -> *const TracerHooks {
    match Thread::current() {
        Some(_) => &raw const HOOKS,
        None => core::ptr::null(),
    }
}

/// Returns the number of a region.
unsafe extern "C" fn region(name: *const c_char) -> u32 {
    let Some(thread) = Thread::current() else {
        return u32::MAX;
    };
    // SAFETY: libdownbeat passes a name.
    let name = unsafe { CStr::from_ptr(name) };
    if let Some(number) = thread.process().known(name) {
        return number.into();
    }
    let kept: &'static CStr = Box::leak(CString::from(name).into_boxed_c_str());
    thread.number_of(kept).into()
}

extern "C" fn enter(region: u32) {
    if let (Some(thread), Ok(region)) = (Thread::current(), u16::try_from(region))
        && process::records()
    {
        thread.enter(region, None);
    }
}

extern "C" fn leave(region: u32) {
    if let (Some(thread), Ok(region)) = (Thread::current(), u16::try_from(region))
        && process::records()
    {
        let ticks = thread.ticks();
        thread.leave(region, false, ticks);
    }
}

/// Records the global time at a reading of the counter, by the clock of the program; all
/// ranks do so, if this number is that of all. A clock with an artificial error has ticks
/// of its own.
extern "C" fn sample(ticks: u64, nanos: i64, ranks: u32) {
    if let Some(thread) = Thread::current()
        && communicators::size() == Some(ranks)
        && !synchronize::is_skewed()
    {
        synchronize::sampled(thread, ticks, nanos);
    }
}

/// Begins work of libdownbeat for the program, as a region: its calls of MPI are none of the program until [`end_own`]. Returns false
/// within such work.
extern "C" fn begin_own(region: u32) -> bool {
    let Some(thread) = Thread::current() else {
        return false;
    };
    if thread.is_quiet() {
        return false;
    }
    enter(region);
    thread.be_quiet(true);
    true
}

extern "C" fn end_own(region: u32) {
    if let Some(thread) = Thread::current() {
        thread.be_quiet(false);
        leave(region);
    }
}
