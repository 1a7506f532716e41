//! Timers of the regions of a program (White 2007): a timer for each name, with statistics for each thread, and one report.

use core::ffi::{c_char, c_int};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use downbeat::regions::{ProfileReport, Region, RegionSettings};

use crate::boundary::{boundary, check_place, report, text, write};
use crate::failure::Failure;
use crate::identity::mark;
use crate::library::{Library, check_version, first, in_first_library};
use crate::objects::TimerHandle;
use crate::status::{DOWNBEAT_ERROR_ARGUMENT, DOWNBEAT_ERROR_HANDLE, DOWNBEAT_OK};
use crate::tracer::TracedRegion;

/// Kind of a timer: a number that is hardly anywhere else.
const TIMER: u64 = 0xd0_b3a7_7133_e2d0;

/// All timers by their names; they are never freed.
static TIMERS: Mutex<BTreeMap<String, &'static TimerHandle>> = Mutex::new(BTreeMap::new());

/// Addresses of the texts that were not freed yet.
static TEXTS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Finds the timer with a name, or creates it: the same for the same name in all threads. It is never freed. The first one calibrates the
/// clock of all timers, for 10 ms. `header` must be `DOWNBEAT_ABI`. Any thread may call it; keep the timer, for a lookup takes a lock.
///
/// # Safety
/// `name` must be NULL or a text, and `timer` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_get_timer_abi(
    name: *const c_char,
    timer: *mut *mut TimerHandle,
    header: u32,
) -> c_int {
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
            Box::leak(Box::new(TimerHandle {
                mark: mark(TIMER),
                region: Region::named(name),
                traced: TracedRegion::named(name),
            }))
        });
        // SAFETY: the caller guarantees a place.
        unsafe { write(timer, "timer", core::ptr::from_ref(*found).cast_mut()) }
    })
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

/// Begins an event of this thread. If one is running, it goes on, which the report counts. Any thread may call it at any time.
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
    unsafe { with_region(timer, start, |first| first.downbeat_start_timer) }
}

/// Ends the event of this thread. If none is running, nothing happens, which the report counts. Any thread may call it at any time.
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
    unsafe { with_region(timer, stop, |first| first.downbeat_stop_timer) }
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
