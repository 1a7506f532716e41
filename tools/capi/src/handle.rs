//! Handles: objects of the library that C programs hold.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;
use crate::identity::mark;
use crate::status::DOWNBEAT_ERROR_HANDLE;

/// An object with a mark that tells if it is open.
///
/// Its memory is never freed, so that a call with a closed handle is an error and not a crash; it is used again after
/// [`CLOSED`] others were closed.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Handle<T: 'static> {
    mark: AtomicU64,
    content: UnsafeCell<Option<T>>,
}

// SAFETY: the content is only replaced while the handle is closed, when no call may use it.
unsafe impl<T: Send + Sync> Sync for Handle<T> {}

/// Content of a handle.
pub(crate) trait Held: Send + Sync {
    /// Mark of an open handle of this type: a number that is hardly anywhere else.
    const OPEN: u64;
}

/// Number of closed handles that are not used again yet.
const CLOSED: usize = 1_024;

/// Closed handles of one type; the last closed one is the last.
pub(crate) struct ClosedHandles<T: 'static>(Mutex<VecDeque<&'static Handle<T>>>);

impl<T> ClosedHandles<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<T: Held> Handle<T> {
    /// Makes a handle that is open.
    pub(crate) fn open(content: T, closed: &ClosedHandles<T>) -> &'static Self {
        let mut closed = closed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = if closed.len() > CLOSED {
            closed.pop_front()
        } else {
            None
        };
        let handle = handle.unwrap_or_else(|| {
            Box::leak(Box::new(Self {
                mark: AtomicU64::new(0),
                content: UnsafeCell::new(None),
            }))
        });
        // SAFETY: the handle is closed, and this thread has the only reference that may be used for this.
        unsafe { *handle.content.get() = Some(content) };
        handle.mark.store(mark(T::OPEN), Ordering::Release);
        handle
    }

    /// Returns the content of a handle that a program gave.
    ///
    /// # Safety
    /// It must be NULL, or a handle that the library returned, closed or not.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(handle: *const Self) -> Result<&'a T, Failure> {
        // SAFETY: as required of the caller.
        unsafe { Self::open_content(handle) }.ok_or_else(|| Self::refused(handle))
    }

    /// The same, without a reason.
    ///
    /// # Safety
    /// As for [`get`](Self::get).
    #[inline(always)]
    pub(crate) unsafe fn open_content<'a>(handle: *const Self) -> Option<&'a T> {
        // SAFETY: the memory of a handle is never freed.
        let handle = unsafe { handle.as_ref() }?;
        if handle.mark.load(Ordering::Acquire) != mark(T::OPEN) {
            return None;
        }
        // SAFETY: an open handle has a content, which is not replaced before it was closed.
        unsafe { &*handle.content.get() }.as_ref()
    }

    #[cold]
    fn refused(handle: *const Self) -> Failure {
        if handle.is_null() {
            Failure::null("the handle")
        } else {
            Failure::new(DOWNBEAT_ERROR_HANDLE, "the handle is closed, or is none")
        }
    }

    /// Closes a handle.
    ///
    /// # Safety
    /// As for [`get`](Self::get).
    pub(crate) unsafe fn close(
        handle: *const Self,
        closed: &ClosedHandles<T>,
    ) -> Result<(), Failure> {
        // SAFETY: the caller guarantees what `get` requires.
        unsafe { Self::get(handle) }?;
        // SAFETY: as in `get`; its memory is never freed.
        let handle: &'static Self = unsafe { &*handle };
        let was =
            handle
                .mark
                .compare_exchange(mark(T::OPEN), 0, Ordering::AcqRel, Ordering::Relaxed);
        if was.is_err() {
            let why = "the handle was closed by another thread";
            return Err(Failure::new(DOWNBEAT_ERROR_HANDLE, why));
        }
        let mut closed = closed.0.lock().unwrap_or_else(PoisonError::into_inner);
        closed.push_back(handle);
        Ok(())
    }

    /// Distance from a handle to a part of its content.
    pub(crate) fn distance_to<P>(&self, part: &P) -> usize {
        core::ptr::from_ref(part).addr() - core::ptr::from_ref(self).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::DOWNBEAT_ERROR_NULL;

    impl Held for String {
        const OPEN: u64 = 1;
    }

    static CLOSED_TEXTS: ClosedHandles<String> = ClosedHandles::new();

    #[test]
    fn a_closed_handle_is_refused() {
        let handle = Handle::open("text".to_owned(), &CLOSED_TEXTS);
        let get = |handle: *const Handle<String>| {
            // SAFETY: NULL, or a handle.
            let found = unsafe { Handle::get(handle) };
            found.cloned().map_err(|why| why.status)
        };
        assert_eq!(get(handle), Ok("text".to_owned()));
        assert_eq!(get(core::ptr::null()), Err(DOWNBEAT_ERROR_NULL));
        // SAFETY: a handle.
        let close = || unsafe { Handle::close(handle, &CLOSED_TEXTS) }.map_err(|why| why.status);
        assert_eq!(close(), Ok(()));
        assert_eq!(get(handle), Err(DOWNBEAT_ERROR_HANDLE));
        assert_eq!(close(), Err(DOWNBEAT_ERROR_HANDLE));
        // Others do not get its memory soon.
        for _ in 0..CLOSED {
            let other = Handle::open(String::new(), &CLOSED_TEXTS);
            assert!(!core::ptr::eq(other, handle));
            // SAFETY: a handle.
            unsafe { Handle::close(other, &CLOSED_TEXTS) }.unwrap();
        }
        assert!(core::ptr::eq(
            Handle::open(String::new(), &CLOSED_TEXTS),
            handle
        ));
    }
}
