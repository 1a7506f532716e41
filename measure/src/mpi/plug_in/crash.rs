//! Reports of crashes in plug-ins, in one line that names the function.
//!
//! The handlers stay while a plug-in is in use: to install them around every call would take longer than many calls. They only report
//! signals that arrive inside the plug-in's code; then, as for all others, the previous handler takes over.
#![expect(unsafe_code, reason = "handlers of signals are installed by C")]

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering, compiler_fence};
use std::sync::{Mutex, PoisonError};

/// Signals of a crash, with the rest of the line.
const SIGNALS: [(c_int, &[u8]); 5] = [
    (libc::SIGSEGV, b"crashed with SIGSEGV\n"),
    (libc::SIGBUS, b"crashed with SIGBUS\n"),
    (libc::SIGFPE, b"crashed with SIGFPE\n"),
    (libc::SIGILL, b"crashed with SIGILL\n"),
    (libc::SIGABRT, b"crashed with SIGABRT\n"),
];

/// Function of a plug-in, as it is named in the report of a crash.
#[derive(Debug)]
pub(super) struct CrashPlace(Box<[u8]>);

impl CrashPlace {
    pub(super) fn new(name: &str, function: &str) -> Box<Self> {
        let text = format!("{name}: {function} ");
        Box::new(Self(text.into_bytes().into_boxed_slice()))
    }

    /// Calls code of the plug-in.
    #[inline(always)]
    pub(super) fn inside<T>(&self, call: impl FnOnce() -> T) -> T {
        CURRENT.store((&raw const *self).cast_mut(), Ordering::Relaxed);
        // The handler runs on this thread, or on one that this code started.
        compiler_fence(Ordering::SeqCst);
        let result = call();
        compiler_fence(Ordering::SeqCst);
        CURRENT.store(null_mut(), Ordering::Relaxed);
        result
    }
}

/// Function that runs; null outside of plug-ins.
static CURRENT: AtomicPtr<CrashPlace> = AtomicPtr::new(null_mut());

/// Actions before ours, in the order of [`SIGNALS`].
struct PreviousActions(UnsafeCell<[MaybeUninit<libc::sigaction>; SIGNALS.len()]>);

// SAFETY: they are written while no handler of ours is installed, under the lock of `USERS`, and only read while one is.
unsafe impl Sync for PreviousActions {}

static PREVIOUS: PreviousActions =
    PreviousActions(UnsafeCell::new([MaybeUninit::uninit(); SIGNALS.len()]));

/// Number of users of the handlers.
static USERS: Mutex<usize> = Mutex::new(0);

/// Handlers, which are installed as long as this exists.
#[derive(Debug)]
pub(super) struct CrashHandlers(());

impl CrashHandlers {
    pub(super) fn install() -> Self {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            for (index, (signal, _)) in SIGNALS.iter().enumerate() {
                // SAFETY: zeros are a valid action.
                let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = report;
                action.sa_sigaction = handler as usize;
                // The stack may have overflowed; Rust gives its threads another one for handlers.
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                // SAFETY: both actions are valid for the call, and the index is below the length; no handler of ours reads the
                // previous action yet.
                unsafe {
                    libc::sigaction(*signal, &raw const action, place_of_previous(index));
                }
            }
        }
        *users += 1;
        Self(())
    }
}

impl Drop for CrashHandlers {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0 {
            for (index, (signal, _)) in SIGNALS.iter().enumerate() {
                restore(*signal, index);
            }
        }
    }
}

fn place_of_previous(index: usize) -> *mut libc::sigaction {
    PREVIOUS
        .0
        .get()
        .cast::<libc::sigaction>()
        .wrapping_add(index)
}

/// Restores the action before ours. This is safe in a handler.
fn restore(signal: c_int, index: usize) {
    // SAFETY: the action was written when the handler was installed, and the index is below the length.
    unsafe {
        libc::sigaction(signal, place_of_previous(index), null_mut());
    }
}

/// Reports a crash by calls that are safe in a handler of signals, and lets the previous handler end the process.
extern "C" fn report(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    let Some(index) = SIGNALS.iter().position(|(known, _)| *known == signal) else {
        return;
    };
    let place = CURRENT.swap(null_mut(), Ordering::Relaxed);
    // SAFETY: a place lives until its function has returned, which this handler interrupts.
    if let Some(CrashPlace(text)) = unsafe { place.as_ref() } {
        let part = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let parts = [part(text), part(SIGNALS[index].1)];
        // SAFETY: both parts are readable. Nothing can be done if standard error is closed.
        unsafe {
            libc::writev(libc::STDERR_FILENO, parts.as_ptr(), parts.len() as c_int);
        }
    }
    restore(signal, index);
    // SAFETY: the system passes valid information.
    let was_sent = unsafe { (*info).si_code } <= 0;
    // A faulting instruction is repeated after this; a signal that a process sent is not.
    if was_sent {
        // SAFETY: this is safe in a handler.
        unsafe {
            libc::raise(signal);
        }
    }
}
