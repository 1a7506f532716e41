//! The tracer of this process, if it is traced by libdownbeat_trace.

use core::ffi::c_char;
use std::ffi::CString;
use std::sync::OnceLock;

/// Functions of the tracer, which has the same type.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct TracerHooks {
    size: usize,
    region: unsafe extern "C" fn(*const c_char) -> u32,
    enter: extern "C" fn(u32),
    leave: extern "C" fn(u32),
    sample: extern "C" fn(u64, i64, u32),
    begin_own: extern "C" fn(u32) -> bool,
    end_own: extern "C" fn(u32),
}

/// Region of a program that is traced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedRegion {
    hooks: &'static TracerHooks,
    number: u32,
}

/// Finds the tracer; `None` if the process is not traced.
fn hooks() -> Option<&'static TracerHooks> {
    static FOUND: OnceLock<Option<&TracerHooks>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // It is preloaded, or absent.
        // SAFETY: the name ends with a NUL.
        let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"downbeat_tracer".as_ptr()) };
        if function.is_null() {
            return None;
        }
        // SAFETY: it is this function of the tracer.
        let function: extern "C" fn() -> *const TracerHooks =
            unsafe { core::mem::transmute(function) };
        // SAFETY: the tracer returns NULL, or functions that live as long as the process.
        let found = unsafe { function().as_ref() }?;
        (found.size >= size_of::<TracerHooks>()).then_some(found)
    })
}

impl TracedRegion {
    /// Returns the region with a name, if the process is traced.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let hooks = hooks()?;
        let name = CString::new(name).ok()?;
        // SAFETY: it is a text.
        let number = unsafe { (hooks.region)(name.as_ptr()) };
        Some(Self { hooks, number })
    }

    /// Records that it is entered.
    #[cold]
    pub(crate) fn enter(self) {
        (self.hooks.enter)(self.number);
    }

    /// Records that it is left.
    #[cold]
    pub(crate) fn leave(self) {
        (self.hooks.leave)(self.number);
    }
}

/// Does work of this library that calls MPI: no message of it is one of the program, and it is recorded as one region.
#[cfg(feature = "mpi")]
pub(crate) fn as_own<T>(region: &core::ffi::CStr, work: impl FnOnce() -> T) -> T {
    struct End(&'static TracerHooks, u32);

    impl Drop for End {
        fn drop(&mut self) {
            (self.0.end_own)(self.1);
        }
    }

    let _end = hooks().and_then(|hooks| {
        // SAFETY: it is a text.
        let region = unsafe { (hooks.region)(region.as_ptr()) };
        (hooks.begin_own)(region).then(|| End(hooks, region))
    });
    work()
}

/// Records the global time at a reading of the counter, which this number of ranks have just compared, if the process is traced.
#[cfg(feature = "mpi")]
pub(crate) fn sample(at: impl FnOnce() -> (u64, i64, u32)) {
    if let Some(hooks) = hooks() {
        let (ticks, nanos, ranks) = at();
        (hooks.sample)(ticks, nanos, ranks);
    }
}
