//! Functions that wrappers stand before.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, Ordering};

use crate::arguments::Arguments;
use crate::failure::fail;
use crate::objects;

/// A function of MPI, as a binding names it.
#[derive(Debug)]
pub(crate) struct Call {
    symbol: &'static CStr,
    /// Name of C, which all bindings share.
    name: &'static CStr,
    next: AtomicPtr<c_void>,
    number: AtomicU16,
    is_recorded: AtomicBool,
}

impl Call {
    /// Creates a function that is looked up when it is first called.
    pub(crate) const fn new(symbol: &'static CStr, name: &'static CStr) -> Self {
        Self {
            symbol,
            name,
            next: AtomicPtr::new(null_mut()),
            number: AtomicU16::new(u16::MAX),
            is_recorded: AtomicBool::new(false),
        }
    }

    /// Calls the function.
    ///
    /// # Safety
    /// The arguments must be those of the function.
    #[inline(always)]
    pub(crate) unsafe fn forward(&self, arguments: impl Arguments) -> usize {
        let mut next = self.next.load(Ordering::Acquire);
        if next.is_null() {
            next = self.find();
        }
        // SAFETY: the caller passes its arguments.
        unsafe { arguments.pass_to(next) }
    }

    /// Number in records.
    #[inline(always)]
    pub(crate) fn number(&self) -> u16 {
        self.number.load(Ordering::Relaxed)
    }

    /// Name of C.
    pub(crate) fn name(&self) -> &'static CStr {
        self.name
    }

    /// Returns true if calls of this function are recorded.
    #[inline(always)]
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded.load(Ordering::Relaxed)
    }

    /// Returns true if the function has no number yet.
    #[inline(always)]
    pub(crate) fn is_new(&self) -> bool {
        self.number() == u16::MAX
    }

    /// Gives the function its number, before its first record.
    pub(crate) fn set_number(&self, number: u16, is_recorded: bool) {
        self.is_recorded.store(is_recorded, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let found = objects::next(self.symbol);
        if found.is_null() {
            let symbol = self.symbol.to_string_lossy();
            fail(&format!("the MPI library of this program has no {symbol}"));
        }
        self.next.store(found, Ordering::Release);
        found
    }
}
