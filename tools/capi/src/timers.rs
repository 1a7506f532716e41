//! Timers of the regions of a program (White 2007): a timer for each name, with statistics for each thread, and one report.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use downbeat::regions::{ProfileReport, Region, RegionSettings};

use crate::boundary::{boundary, check_place, report, text, write};
use crate::failure::Failure;
use crate::identity::{DOWNBEAT_ABI, mark};
use crate::library::{Library, check_version, first, in_first_library};
use crate::objects::TimerHandle;
use crate::status::{DOWNBEAT_ERROR_ARGUMENT, DOWNBEAT_ERROR_HANDLE, DOWNBEAT_OK};
use crate::tracer::TracedRegion;

/// Kind of a timer: a number that is hardly anywhere else.
const TIMER: u64 = 0xd0_b3a7_7133_e2d0;

/// All timers by their names; they are never freed.
static TIMERS: Mutex<BTreeMap<String, &'static TimerHandle>> = Mutex::new(BTreeMap::new());

/// Timers at places that follow from their addresses: tells without a lock whether a pointer, which may be anything, is a timer. A timer
/// whose place is taken is looked up by its name.
static PLACES: [AtomicPtr<TimerHandle>; 256] = [const { AtomicPtr::new(null_mut()) }; 256];

fn place(timer: *const TimerHandle) -> &'static AtomicPtr<TimerHandle> {
    &PLACES[timer.addr() / align_of::<TimerHandle>() % PLACES.len()]
}

/// Returns true if a pointer is a timer with this name.
#[inline]
fn has_name(timer: *mut TimerHandle, name: &[u8]) -> bool {
    let known = place(timer).load(Ordering::Acquire);
    // SAFETY: a timer that has a place, and no timer is freed.
    known == timer
        && unsafe { known.as_ref() }.is_some_and(|known| known.region.name().as_bytes() == name)
}

/// Addresses of the texts that were not freed yet.
static TEXTS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Finds the timer with a name, or creates it: the same for the same name in all threads. It is never freed. The first one calibrates the
/// clock of all timers, for 10 ms. `header` must be `DOWNBEAT_ABI`. Any thread may call it. Where `*timer` is that timer already, it costs
/// little; other calls take a lock.
///
/// # Safety
/// `name` must be NULL or a text, and `timer` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_get_timer_abi(
    name: *const c_char,
    timer: *mut *mut TimerHandle,
    header: u32,
) -> c_int {
    if header == DOWNBEAT_ABI && !name.is_null() && !timer.is_null() {
        // SAFETY: the caller guarantees a place.
        let known = unsafe { timer.read() };
        // SAFETY: the caller guarantees a text.
        if has_name(known, unsafe { CStr::from_ptr(name) }.to_bytes()) {
            return DOWNBEAT_OK;
        }
    }
    in_first_library!(downbeat_get_timer_abi(name, timer, header));
    boundary(|| {
        check_version(header)?;
        check_place(timer, "timer")?;
        // SAFETY: the caller guarantees a text.
        let name = unsafe { text(name, "name") }?;
        let name = name.ok_or_else(|| Failure::null("name"))?;
        if name.is_empty() {
            return Err(Failure::new(
                DOWNBEAT_ERROR_ARGUMENT,
                "a timer needs a name",
            ));
        }
        let settings = RegionSettings::from_env();
        settings.map_err(Failure::of(DOWNBEAT_ERROR_ARGUMENT))?;
        let mut timers = TIMERS.lock().unwrap_or_else(PoisonError::into_inner);
        let found = timers.entry(name.to_owned()).or_insert_with(|| {
            let created = Box::into_raw(Box::new(TimerHandle {
                mark: mark(TIMER),
                region: Region::named(name),
                traced: TracedRegion::named(name),
            }));
            let (free, placed) = (null_mut(), Ordering::Release);
            let _ = place(created).compare_exchange(free, created, placed, Ordering::Relaxed);
            // SAFETY: it is never freed.
            unsafe { &*created }
        });
        // SAFETY: the caller guarantees a place.
        unsafe { write(timer, "timer", core::ptr::from_ref(*found).cast_mut()) }
    })
}

/// The same as `downbeat_get_timer_abi`, for a name of this length in Fortran.
///
/// # Safety
/// As there, with a `name` of at least `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_get_timer_f(
    name: *const c_char,
    length: usize,
    timer: *mut *mut TimerHandle,
    header: u32,
) -> c_int {
    // SAFETY: the caller guarantees a text.
    let name = unsafe { slice::from_raw_parts(name.cast::<u8>(), length) };
    // SAFETY: the caller guarantees a place.
    if header == DOWNBEAT_ABI && has_name(unsafe { timer.read() }, name) {
        return DOWNBEAT_OK;
    }
    // Fortran pads texts with blanks, not with zeros: what follows one is no part of the name.
    let text = [name, &[0]].concat();
    // SAFETY: as above; the text ends with a NUL.
    unsafe { downbeat_get_timer_abi(text.as_ptr().cast(), timer, header) }
}

/// A call with a timer.
type TimerCall = unsafe extern "C" fn(*const TimerHandle) -> c_int;

/// Does work on the region of a timer; on one of another library, that does it.
///
/// # Safety
/// The timer must be NULL, or point to memory as large as one.
#[inline(always)]
unsafe fn with_region(
    timer: *const TimerHandle,
    work: impl FnOnce(&TimerHandle),
    other: impl FnOnce(&Library) -> TimerCall,
) -> c_int {
    // SAFETY: the caller guarantees it. Nothing here panics.
    match unsafe { timer.as_ref() } {
        Some(timer) if timer.mark == mark(TIMER) => {
            work(timer);
            DOWNBEAT_OK
        }
        _ => refused(timer, other),
    }
}

#[cold]
fn refused(timer: *const TimerHandle, other: impl FnOnce(&Library) -> TimerCall) -> c_int {
    if let Some(first) = first() {
        // SAFETY: the caller guarantees a timer.
        return unsafe { other(first)(timer) };
    }
    report(&if timer.is_null() {
        Failure::null("the timer")
    } else {
        Failure::new(DOWNBEAT_ERROR_HANDLE, "this is no timer")
    })
}

/// Begins an event of this thread. If one is running, it goes on, which the report counts. Any thread may call it at any time, but no
/// signal handler: the first event of a thread takes a lock, which the interrupted call may hold.
///
/// # Safety
/// `timer` must be NULL or a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_start_timer(timer: *const TimerHandle) -> c_int {
    let start = |timer: &TimerHandle| {
        if let Some(traced) = timer.traced {
            traced.enter();
        }
        timer.region.start();
    };
    // SAFETY: the caller guarantees a timer.
    unsafe { with_region(timer, start, |first| first.functions.downbeat_start_timer) }
}

/// Ends the event of this thread. If none is running, nothing happens, which the report counts. Any thread may call it at any time, but no
/// signal handler.
///
/// # Safety
/// `timer` must be NULL or a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_stop_timer(timer: *const TimerHandle) -> c_int {
    let stop = |timer: &TimerHandle| {
        timer.region.stop();
        if let Some(traced) = timer.traced {
            traced.leave();
        }
    };
    // SAFETY: the caller guarantees a timer.
    unsafe { with_region(timer, stop, |first| first.functions.downbeat_stop_timer) }
}

/// Writes a report of all timers of this process, in all threads, as a text that `downbeat_free_text` frees. Any thread may call it at
/// any time.
///
/// # Safety
/// `report` must be NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_report_timers(report: *mut *mut c_char) -> c_int {
    in_first_library!(downbeat_report_timers(report));
    boundary(|| {
        check_place(report, "report")?;
        let text = give(&downbeat::regions::report());
        // SAFETY: the caller guarantees a place.
        unsafe { write(report, "report", text) }
    })
}

/// Makes the text of a report, which the program frees.
pub(crate) fn give(report: &ProfileReport) -> *mut c_char {
    let text = report.to_string().replace('\0', "?");
    let text = CString::new(text).unwrap_or_default().into_raw();
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.insert(text.addr());
    text
}

/// Frees a text that the library returned; NULL is none. Any thread may call it.
///
/// # Safety
/// `text` must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_free_text(text: *mut c_char) -> c_int {
    in_first_library!(downbeat_free_text(text));
    boundary(|| {
        if text.is_null() {
            return Ok(());
        }
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if !texts.remove(&text.addr()) {
            let why = "the text was freed, or does not come from this library";
            return Err(Failure::new(DOWNBEAT_ERROR_HANDLE, why));
        }
        // SAFETY: a text of ours, which was not freed yet.
        drop(unsafe { CString::from_raw(text) });
        Ok(())
    })
}
