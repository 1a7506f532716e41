//! Synchronization of the ranks, by libdownbeat_mpi: it is loaded when MPI is initialized.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use std::env;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use downbeat_clock_core::Duration;
use downbeat_recording::settings::LIBRARY;
use downbeat_recording::{Definition, Sample};

use crate::communicators;
use crate::constants::{Handle, comm_world};
use crate::failure::say;
use crate::thread::Thread;

/// Version of libdownbeat's interface that the functions here belong to.
const ABI: u32 = 1 << 16;

/// Variable by which libdownbeat_mpi is told the algorithm, and the one without it.
const ALGORITHM: &str = "DOWNBEAT_ALGORITHM";
const DEFAULT: &CStr = c"auto/100ms";

/// Functions of libdownbeat_mpi, with their types in downbeat.h.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        #[derive(Debug)]
        struct Library {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            fn find(symbol: impl Fn(&CStr) -> Result<*mut c_void, String>) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        type Function = unsafe extern "C" fn($($argument),*) -> $result;
                        // SAFETY: this is its type.
                        unsafe { core::mem::transmute::<*mut c_void, Function>(symbol($symbol)?) }
                    },)*
                })
            }
        }
    };
}

// Communicators, which are addresses or numbers, are passed as words.
functions! {
    synchronize = c"downbeat_synchronize_abi" (usize, *const c_char, *mut *mut c_void, u32) -> c_int;
    resynchronize = c"downbeat_resynchronize" (*const c_void, usize) -> c_int;
    convert = c"downbeat_clock_convert" (*const c_void, u64, *mut i64) -> c_int;
    now = c"downbeat_clock_now" (*const c_void, *mut i64) -> c_int;
    message = c"downbeat_error_message" () -> *const c_char;
}

/// Clock that was synchronized; null if that failed.
static CLOCK: OnceLock<Option<(Library, usize)>> = OnceLock::new();

static SESSIONS: AtomicU32 = AtomicU32::new(0);

/// Number of readings of a clock that counts ticks of its own.
const READINGS: u32 = 100;

/// Number of ticks between the two points of a local time.
const SPAN: u64 = 1 << 40;

impl Library {
    fn load() -> Result<Self, String> {
        let path =
            env::var(LIBRARY).map_err(|_| format!("{LIBRARY} does not name libdownbeat_mpi"))?;
        let path = CString::new(path).map_err(|why| why.to_string())?;
        // SAFETY: the path ends with zero.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: it has failed, and has a reason.
            let why = unsafe { libc::dlerror() };
            // SAFETY: the text is valid until the next call of its kind.
            let why = unsafe { CStr::from_ptr(why) };
            return Err(why.to_string_lossy().into_owned());
        }
        Self::find(|name| {
            // SAFETY: the handle is valid, and the name ends with zero.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if found.is_null() {
                let [path, name] = [&*path, name].map(CStr::to_string_lossy);
                return Err(format!("{path} has no {name}"));
            }
            Ok(found)
        })
    }

    fn said(&self) -> String {
        // SAFETY: it can always be called.
        let text = unsafe { (self.message)() };
        // SAFETY: the text lives until the next call that fails.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }

    /// Returns the global time at a reading of the counter; `None` if the clock has an
    /// artificial error, and ticks of its own.
    fn global(&self, clock: usize, ticks: u64) -> Option<i64> {
        if is_skewed() {
            return None;
        }
        let mut nanos = 0;
        // SAFETY: the clock is open.
        let code = unsafe { (self.convert)(crate::pmpi::pointer(clock), ticks, &raw mut nanos) };
        (code == 0).then_some(nanos)
    }

    /// Reads the counter, and returns the global time at that moment.
    fn read(&self, clock: usize, thread: &Thread) -> Option<(u64, i64)> {
        let ticks = thread.ticks();
        if let Some(nanos) = self.global(clock, ticks) {
            return Some((ticks, nanos));
        }
        let between = || {
            let (before, mut nanos) = (thread.ticks(), 0);
            // SAFETY: the clock is open.
            let code = unsafe { (self.now)(crate::pmpi::pointer(clock), &raw mut nanos) };
            let after = thread.ticks();
            // Counters of two cores can differ.
            let lasted = after.checked_sub(before).filter(|_| code == 0)?;
            Some((lasted, before.midpoint(after), nanos))
        };
        // The quickest was not interrupted.
        let all = (0..READINGS).filter_map(|_| between());
        let (_, ticks, nanos) = all.min_by_key(|(lasted, ..)| *lasted)?;
        Some((ticks, nanos))
    }
}

/// Returns true if the clocks of libdownbeat have artificial errors.
pub(crate) fn is_skewed() -> bool {
    env::var_os("DOWNBEAT_SKEW").is_some_and(|spec| !spec.is_empty())
}

/// Synchronizes all ranks when MPI was initialized, and defines their clocks; `rank` is that of this process.
pub(crate) fn begin(thread: &Thread, rank: i32) {
    let clock = as_region(thread, || {
        let library = Library::load()?;
        let mut clock = null_mut();
        let is_default = env::var_os(ALGORITHM).is_none_or(|label| label == "auto");
        let label = if is_default { DEFAULT.as_ptr() } else { null() };
        // SAFETY: MPI is initialized, and all ranks do the same.
        let code = unsafe { (library.synchronize)(comm_world(), label, &raw mut clock, ABI) };
        if code != 0 {
            return Err(library.said());
        }
        Ok((library, clock.expose_provenance()))
    });
    let clock = match clock {
        Ok(clock) => Some(clock),
        Err(why) => {
            if rank == 0 {
                say(&format!("the clocks are not synchronized: {why}"));
            }
            None
        }
    };
    // The local time of rank 0 is the global time.
    let global = clock
        .as_ref()
        .filter(|_| rank == 0)
        .and_then(|(library, clock)| {
            let ticks = thread.ticks();
            Some([
                (ticks, library.global(*clock, ticks)?),
                (ticks + SPAN, library.global(*clock, ticks + SPAN)?),
            ])
        });
    define_clock(thread, global);
    let _ = CLOCK.set(clock);
    sample(thread);
}

/// Calls MPI for a synchronization, which is recorded as a region: the program waits for it.
fn as_region<T>(thread: &Thread, f: impl FnOnce() -> T) -> T {
    let region = thread.number_of(c"(clock synchronization)");
    thread.enter(region, None);
    let result = thread.quietly(f);
    let ticks = thread.ticks();
    thread.leave(region, false, ticks);
    result
}

/// Counts a collective operation, if it is one of all ranks, and synchronizes them again after each such number as is asked for: all ranks
/// count alike.
pub(crate) fn count(thread: &Thread, communicator: Handle) {
    static OPERATIONS: AtomicU64 = AtomicU64::new(0);
    if let Some(every) = thread.process().settings.resync
        && communicators::is_of_all(communicator)
    {
        let operations = OPERATIONS.fetch_add(1, Ordering::Relaxed) + 1;
        if operations.is_multiple_of(every.get()) {
            again(thread);
        }
    }
}

/// Synchronizes all ranks again.
pub(crate) fn again(thread: &Thread) {
    let Some(Some((library, clock))) = CLOCK.get() else {
        return;
    };
    end_live(thread);
    let clock = crate::pmpi::pointer(*clock);
    // SAFETY: MPI is initialized, and all ranks do the same.
    let code = as_region(thread, || unsafe {
        (library.resynchronize)(clock, comm_world())
    });
    if code == 0 {
        sample(thread);
    }
}

/// Records the global time by the present model.
fn sample(thread: &Thread) {
    let Some(Some((library, clock))) = CLOCK.get() else {
        return;
    };
    let Some((ticks, nanos)) = library.read(*clock, thread) else {
        return;
    };
    sampled(thread, ticks, nanos);
    match library.global(*clock, ticks + SPAN) {
        Some(later) => define_live(thread, [(ticks, nanos), (ticks + SPAN, later)]),
        None => *live_since() = Some((ticks, nanos)),
    }
}

/// Reading of the counter and global time since which the present model holds, if its
/// line is not known.
fn live_since() -> MutexGuard<'static, Option<(u64, i64)>> {
    static SINCE: Mutex<Option<(u64, i64)>> = Mutex::new(None);
    SINCE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Defines the global time by the present model up to now, if its line is not known.
fn end_live(thread: &Thread) {
    let Some((since, Some(Some((library, clock))))) =
        live_since().take().map(|since| (since, CLOCK.get()))
    else {
        return;
    };
    if let Some(now) = library.read(*clock, thread) {
        define_live(thread, [since, now]);
    }
}

/// Defines the global time by two points.
fn define_live(thread: &Thread, points: [(u64, i64); 2]) {
    thread.define(&Definition::Live(points));
}

/// Records the global time at a reading of the counter, in a session of its own.
pub(crate) fn sampled(thread: &Thread, ticks: u64, nanos: i64) {
    thread.define(&Definition::Sample(Sample {
        session: SESSIONS.fetch_add(1, Ordering::Relaxed),
        ticks,
        nanos,
    }));
}

/// Defines the local time: by two points, or else by a calibration, from now on.
pub(crate) fn define_clock(thread: &Thread, points: Option<[(u64, i64); 2]>) {
    let points = points.or_else(|| {
        let rate = thread
            .clock()
            .calibrate(Duration::from_millis(10))
            .ok()?
            .rate;
        let ticks = thread.ticks();
        Some([(ticks, 0), (ticks + SPAN, rate.duration(SPAN).as_nanos())])
    });
    if let Some(points) = points {
        thread.define(&Definition::Clock(points));
    }
}
