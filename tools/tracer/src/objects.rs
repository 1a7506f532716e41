//! Functions and variables of the other objects of the process.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Finds the function that a wrapper stands before; null if there is none.
///
/// The next one in the order of loading, or else that of an MPI library which a module brought in for itself, as those of Python do.
pub(crate) fn next(symbol: &CStr) -> *mut c_void {
    find(libc::RTLD_NEXT, symbol)
}

/// Finds a symbol of any object, null if there is none.
pub(crate) fn any(symbol: &CStr) -> *mut c_void {
    find(libc::RTLD_DEFAULT, symbol)
}

fn find(objects: *mut c_void, symbol: &CStr) -> *mut c_void {
    // SAFETY: the name ends with zero.
    let found = unsafe { libc::dlsym(objects, symbol.as_ptr()) };
    if found.is_null() {
        in_mpi(symbol)
    } else {
        found
    }
}

/// Variable of another object, which is looked up once.
#[derive(Debug)]
pub(crate) struct Symbol {
    name: &'static CStr,
    found: AtomicUsize,
}

/// Address of a variable that no object has.
pub(crate) const NOWHERE: usize = 1;

impl Symbol {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicUsize::new(0),
        }
    }

    /// Returns the address of the variable; [`NOWHERE`] if there is none.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        match self.found.load(Ordering::Relaxed) {
            0 => self.look_up(),
            found => found,
        }
    }

    #[cold]
    fn look_up(&self) -> usize {
        let found = any(self.name).expose_provenance().max(NOWHERE);
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Finds a symbol of an MPI library that is loaded.
fn in_mpi(symbol: &CStr) -> *mut c_void {
    let mut search = Search {
        symbol: symbol.as_ptr(),
        found: null_mut(),
    };
    // SAFETY: the function is called with this pointer while `search` lives.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

struct Search {
    symbol: *const c_char,
    found: *mut c_void,
}

/// Looks for the symbol in one object; the result 1 ends the search.
unsafe extern "C" fn look(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the system passes an object that lives during the call.
    let name = unsafe { (*object).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: names of objects end with zero.
    let is_mpi = unsafe { CStr::from_ptr(name) }
        .to_bytes()
        .rsplit(|byte| *byte == b'/')
        .next()
        .is_some_and(|file| file.starts_with(b"libmpi"));
    if !is_mpi {
        return 0;
    }
    // SAFETY: as above; this loads nothing.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return 0;
    }
    // SAFETY: `in_mpi` passes a search.
    let search = unsafe { &mut *search.cast::<Search>() };
    // SAFETY: the handle is valid, and the name ends with zero.
    search.found = unsafe { libc::dlsym(handle, search.symbol) };
    // SAFETY: the handle is closed once; the object stays loaded.
    unsafe { libc::dlclose(handle) };
    (!search.found.is_null()).into()
}
