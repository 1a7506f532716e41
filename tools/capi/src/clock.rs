//! Clocks: opening, reading, waiting.

use core::ffi::{c_char, c_double, c_int};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use downbeat::{AnyClock, Clock, GlobalClock, Ticks, Timestamp};

use crate::boundary::{boundary, check_place, report, text, write};
use crate::environment::local_time;
use crate::failure::Failure;
use crate::handle::{ClosedHandles, Handle, Held};
use crate::library::{check_version, in_first_library};
use crate::objects::{ClockHandle, Model};
use crate::status::{DOWNBEAT_ERROR_HANDLE, DOWNBEAT_ERROR_NOT_SYNCHRONIZED, DOWNBEAT_OK};

impl Held for GlobalClock<AnyClock> {
    const OPEN: u64 = 0xd0_b3a7_0b3a_7d0b;
}

static CLOSED: ClosedHandles<GlobalClock<AnyClock>> = ClosedHandles::new();

/// Clock of calls that name none: the one that was synchronized last.
static CURRENT: AtomicPtr<ClockHandle> = AtomicPtr::new(core::ptr::null_mut());

/// Opens a handle for a clock.
pub(crate) fn open(clock: GlobalClock<AnyClock>) -> *mut ClockHandle {
    let handle = Handle::open(clock, &CLOSED);
    core::ptr::from_ref(handle).cast_mut().cast()
}

/// Makes a clock the one of calls that name none.
#[cfg(feature = "mpi")]
pub(crate) fn make_current(clock: *mut ClockHandle) {
    CURRENT.store(clock, Ordering::Release);
}

/// Returns the clock of a handle.
///
/// # Safety
/// It must be NULL, or a handle that the library returned, closed or not.
#[inline(always)]
pub(crate) unsafe fn get<'a>(
    clock: *const ClockHandle,
) -> Result<&'a GlobalClock<AnyClock>, Failure> {
    // SAFETY: the caller guarantees it.
    unsafe { Handle::get(clock.cast()) }
}

/// Opens a clock of this process and calibrates it, for 10 ms. Its time is that since then, in nanoseconds. `name` is `recommended`,
/// `tsc`, `cntvct`, `monotonic`, `raw`, `realtime` or `tai`; NULL stands for the environment variable `DOWNBEAT_CLOCK`, or `recommended`. `header`
/// must be `DOWNBEAT_ABI`. Any thread may call it.
///
/// # Safety
/// `name` must be NULL or a text, and `clock` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_open_abi(
    name: *const c_char,
    clock: *mut *mut ClockHandle,
    header: u32,
) -> c_int {
    in_first_library!(downbeat_clock_open_abi(name, clock, header));
    boundary(|| {
        check_version(header)?;
        check_place(clock, "clock")?;
        // SAFETY: the caller guarantees a text.
        let name = unsafe { text(name, "name") }?;
        let opened = open(GlobalClock::alone(local_time(name)?));
        // SAFETY: the caller guarantees a place.
        unsafe { write(clock, "clock", opened) }
    })
}

/// Closes a clock. No thread may use it any more; a call that does so nevertheless fails. Any thread may call it.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_close(clock: *mut ClockHandle) -> c_int {
    in_first_library!(downbeat_clock_close(clock));
    boundary(|| {
        let null = core::ptr::null_mut();
        // SAFETY: the caller guarantees a clock.
        unsafe { Handle::close(clock.cast_const().cast(), &CLOSED) }?;
        // If it is the current one, there is none now.
        let _ = CURRENT.compare_exchange(clock, null, Ordering::AcqRel, Ordering::Relaxed);
        Ok(())
    })
}

/// Reads a clock, in nanoseconds. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `nanos` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_now(clock: *const ClockHandle, nanos: *mut i64) -> c_int {
    // SAFETY: the caller guarantees a clock. Nothing here panics. A clock of another library has another mark.
    match unsafe { Handle::open_content(clock.cast::<Handle<GlobalClock<AnyClock>>>()) } {
        Some(clock) if !nanos.is_null() => {
            // SAFETY: the caller guarantees a place.
            unsafe { nanos.write(clock.now().as_nanos()) };
            DOWNBEAT_OK
        }
        // SAFETY: as above.
        _ => unsafe { cannot_read(clock, nanos) },
    }
}

/// # Safety
/// As for `downbeat_clock_now`.
#[cold]
unsafe fn cannot_read(clock: *const ClockHandle, nanos: *mut i64) -> c_int {
    in_first_library!(downbeat_clock_now(clock, nanos));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        unsafe { get(clock) }?;
        check_place(nanos, "nanos")
    })
}

/// Writes two values of a clock; returns false, and does nothing, if it is not open in this library or a place is missing. Nothing here
/// panics.
///
/// # Safety
/// As for `downbeat_clock_now_with_error`.
#[inline(always)]
unsafe fn read_two(
    clock: *const ClockHandle,
    [first, second]: [*mut i64; 2],
    read: impl FnOnce(&GlobalClock<AnyClock>) -> [i64; 2],
) -> bool {
    if first.is_null() || second.is_null() {
        return false;
    }
    // SAFETY: the caller guarantees a clock.
    let clock = unsafe { Handle::open_content(clock.cast::<Handle<GlobalClock<AnyClock>>>()) };
    let values = clock.map(read);
    for (place, value) in [first, second]
        .into_iter()
        .zip(values.into_iter().flatten())
    {
        // SAFETY: the caller guarantees places.
        unsafe { place.write(value) };
    }
    values.is_some()
}

/// # Safety
/// As for `downbeat_clock_now_with_error`.
#[cold]
unsafe fn cannot_read_two(
    clock: *const ClockHandle,
    places: [*mut i64; 2],
    names: [&'static str; 2],
) -> c_int {
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        unsafe { get(clock) }?;
        check_place(places[0], names[0])?;
        check_place(places[1], names[1])
    })
}

/// Reads a clock, and the largest error of its time relative to that of rank 0, both in nanoseconds: `INT64_MAX` if none is known. Any
/// thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and the others NULL or places for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_now_with_error(
    clock: *const ClockHandle,
    nanos: *mut i64,
    error: *mut i64,
) -> c_int {
    let read = |clock: &GlobalClock<AnyClock>| {
        let (now, largest) = clock.now_with_error();
        [now.as_nanos(), largest.as_nanos()]
    };
    // SAFETY: the caller guarantees a clock and places.
    if unsafe { read_two(clock, [nanos, error], read) } {
        return DOWNBEAT_OK;
    }
    in_first_library!(downbeat_clock_now_with_error(clock, nanos, error));
    // SAFETY: as above.
    unsafe { cannot_read_two(clock, [error, nanos], ["error", "nanos"]) }
}

/// Reads the earliest and the latest time that rank 0 can show now, in nanoseconds: certain as long as the clocks drift from each other by no
/// more than a thousandth and do not step. `-INT64_MAX` and `INT64_MAX` if nothing is known. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and the others NULL or places for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_now_with_bounds(
    clock: *const ClockHandle,
    earliest: *mut i64,
    latest: *mut i64,
) -> c_int {
    let read = |clock: &GlobalClock<AnyClock>| clock.now_with_bounds().map(Timestamp::as_nanos);
    // SAFETY: the caller guarantees a clock and places.
    if unsafe { read_two(clock, [earliest, latest], read) } {
        return DOWNBEAT_OK;
    }
    in_first_library!(downbeat_clock_now_with_bounds(clock, earliest, latest));
    // SAFETY: as above.
    unsafe { cannot_read_two(clock, [latest, earliest], ["latest", "earliest"]) }
}

/// Reads the counter of a clock. `downbeat_clock_convert` makes nanoseconds of it later. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `ticks` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_ticks(clock: *const ClockHandle, ticks: *mut u64) -> c_int {
    in_first_library!(downbeat_clock_ticks(clock, ticks));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        let read = unsafe { get(clock) }?.clock().ticks();
        // SAFETY: the caller guarantees a place.
        unsafe { write(ticks, "ticks", read.0) }
    })
}

/// Converts a reading of the counter to the time that the clock showed then, by its present model, in nanoseconds. Any thread may call
/// it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `nanos` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_convert(
    clock: *const ClockHandle,
    ticks: u64,
    nanos: *mut i64,
) -> c_int {
    in_first_library!(downbeat_clock_convert(clock, ticks, nanos));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        let shown = unsafe { get(clock) }?.model().apply(Ticks(ticks));
        // SAFETY: the caller guarantees a place.
        unsafe { write(nanos, "nanos", shown.as_nanos()) }
    })
}

/// Converts a reading of the counter through the sessions of `downbeat_timesync`, in
/// nanoseconds: by a smooth curve between them, and straight lines before the first and
/// after the last; without any session as `downbeat_clock_convert`. The curve is cut
/// between two sessions that contradict each other, although the clocks may drift by
/// `DOWNBEAT_MAX_DRIFT`: a clock stepped. A time between these two is on the straight
/// line through both: in order with all others, but wrong by up to the step. Any thread
/// may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `nanos` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_past(
    clock: *const ClockHandle,
    ticks: u64,
    nanos: *mut i64,
) -> c_int {
    in_first_library!(downbeat_clock_past(clock, ticks, nanos));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        let shown = unsafe { get(clock) }?.past(Ticks(ticks));
        // SAFETY: the caller guarantees a place.
        unsafe { write(nanos, "nanos", shown.as_nanos()) }
    })
}

/// Spins until the clock shows a time, in nanoseconds, and writes the time that it shows then to `reached`, which can be NULL. Returns at
/// once if the time is past. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `reached` NULL or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_wait_until(
    clock: *const ClockHandle,
    nanos: i64,
    reached: *mut i64,
) -> c_int {
    in_first_library!(downbeat_clock_wait_until(clock, nanos, reached));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        let shown = unsafe { get(clock) }?.wait_until(Timestamp::from_nanos(nanos));
        if reached.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees a place.
        unsafe { write(reached, "reached", shown.as_nanos()) }
    })
}

/// Converts a time of the clock to the time of day, in nanoseconds since 1970, and writes the largest error of that, if the time of day
/// of the system is right. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and the others NULL or places for numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_time_of_day(
    clock: *const ClockHandle,
    nanos: i64,
    since_1970: *mut i64,
    error: *mut i64,
) -> c_int {
    in_first_library!(downbeat_clock_time_of_day(clock, nanos, since_1970, error));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        let clock = unsafe { get(clock) }?;
        check_place(error, "error")?;
        let unavailable = Failure::of(crate::status::DOWNBEAT_ERROR_UNAVAILABLE);
        let anchor = clock.wall_anchor().map_err(unavailable)?;
        let at = Timestamp::from_nanos(nanos);
        // SAFETY: the caller guarantees a place.
        unsafe { write(since_1970, "since_1970", anchor.nanos_since_epoch(at)) }?;
        // SAFETY: as above.
        unsafe { write(error, "error", anchor.error_at(at).as_nanos()) }
    })
}

/// Writes the clock that was synchronized last, for calls that name none. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_global_clock(clock: *mut *mut ClockHandle) -> c_int {
    in_first_library!(downbeat_global_clock(clock));
    boundary(|| {
        let current = current()?;
        // SAFETY: the caller guarantees a place.
        unsafe { write(clock, "clock", current) }
    })
}

/// Returns the clock that was synchronized last.
pub(crate) fn current() -> Result<*mut ClockHandle, Failure> {
    let current = CURRENT.load(Ordering::Acquire);
    if current.is_null() {
        return Err(Failure::new(
            DOWNBEAT_ERROR_NOT_SYNCHRONIZED,
            "no clock was synchronized yet",
        ));
    }
    Ok(current)
}

/// Reads the clock that was synchronized last, in seconds since the first synchronization: a replacement of `MPI_Wtime`. Not a number
/// before any synchronization. Any thread may call it at any time.
#[unsafe(no_mangle)]
pub extern "C" fn downbeat_wtime() -> c_double {
    in_first_library!(downbeat_wtime());
    // SAFETY: the current clock is a handle.
    let clock = current().and_then(|clock| unsafe { get(clock) });
    match clock {
        Ok(clock) => clock.now().as_nanos() as f64 * 1e-9,
        Err(why) => {
            report(&why);
            f64::NAN
        }
    }
}

/// Writes the address of the model of a clock, for `downbeat_model_now`. It stays valid until the clock is closed, also when the clock is
/// synchronized again. Any thread may call it at any time.
///
/// # Safety
/// `clock` must be NULL or a clock, closed or not, and `model` NULL or a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_clock_model(
    clock: *const ClockHandle,
    model: *mut *const Model,
) -> c_int {
    in_first_library!(downbeat_clock_model(clock, model));
    boundary(|| {
        // SAFETY: the caller guarantees a clock.
        let open = unsafe { get(clock) }?;
        let published = open.model_clock().published();
        // SAFETY: an open clock is not NULL.
        let handle = unsafe { &(*clock).0 };
        // The same for all handles.
        let _ = DISTANCE.set(handle.distance_to(published));
        let address: *const Model = core::ptr::from_ref(published).cast();
        // SAFETY: the caller guarantees a place.
        unsafe { write(model, "model", address) }
    })
}

/// Distance from a handle to the model of its clock.
static DISTANCE: OnceLock<usize> = OnceLock::new();

/// Reads the clock of a model, in nanoseconds, as `downbeat_model_now` does where it cannot do so itself; `INT64_MIN` if the clock is
/// closed. Any thread may call it at any time.
///
/// # Safety
/// `model` must be NULL or come from `downbeat_clock_model`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn downbeat_model_read(model: *const Model) -> i64 {
    // A model is inside the handle of its clock, whose memory is never freed.
    let clock = DISTANCE
        .get()
        .filter(|_| !model.is_null())
        .map_or(core::ptr::null(), |distance| {
            model.cast::<u8>().wrapping_sub(*distance)
        });
    // SAFETY: NULL, or a handle. Nothing here panics. A clock of another library has another mark.
    match unsafe { Handle::open_content(clock.cast::<Handle<GlobalClock<AnyClock>>>()) } {
        Some(clock) => clock.now().as_nanos(),
        None => not_open(model),
    }
}

#[cold]
fn not_open(model: *const Model) -> i64 {
    in_first_library!(downbeat_model_read(model));
    report(&Failure::new(
        DOWNBEAT_ERROR_HANDLE,
        "the model is none of an open clock",
    ));
    i64::MIN
}
