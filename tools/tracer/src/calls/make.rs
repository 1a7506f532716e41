//! Calls that make and free communicators.

use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::communicators::{self, Origin};
use crate::thread::Thread;

/// Origin of a new communicator, and positions of parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making {
    origin: Origin<usize>,
    new: usize,
}

impl Making {
    /// All members of the first argument take part.
    pub(crate) const fn of(new: usize) -> Self {
        let origin = Origin::Parent;
        Self { origin, new }
    }

    /// The same; the copy may be used later.
    pub(crate) const fn copy(new: usize) -> Self {
        let origin = Origin::Copy;
        Self { origin, new }
    }

    /// Only the members of the new one take part.
    pub(crate) const fn by_group(tag: usize, new: usize) -> Self {
        let origin = Origin::Group(tag);
        Self { origin, new }
    }

    /// Two groups are joined.
    pub(crate) const fn between(tag: usize, new: usize) -> Self {
        let origin = Origin::Groups(tag);
        Self { origin, new }
    }
}

/// Makes a communicator from the first argument.
pub(crate) unsafe fn make<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    making: &Making,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let parent = communicators::find(unsafe { B::communicator(a.at(0)) });
    // SAFETY: as above.
    let origin = making.origin.map(|at| unsafe { B::integer(a.at(at)) });
    let index = match (&parent, origin) {
        (Some(parent), Origin::Parent | Origin::Copy) => communicators::count(parent),
        _ => 0,
    };
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    span.leave(failed, ticks);
    if let Some(parent) = parent
        && !failed
    {
        // SAFETY: the call has made the communicator, or none for this rank.
        let new = unsafe { B::new_communicator(a.at(making.new)) };
        thread.quietly(|| communicators::made(thread, &parent, origin, index, new));
    }
    result
}

/// Makes a communicator from a group.
#[cfg(mpi_4)]
pub(crate) unsafe fn make_from_group<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let result = unsafe { super::region::<B, A>(call, a) };
    // In Fortran, the length of the tag is not at hand here.
    if let Some(thread) = Thread::current()
        && !B::IS_FORTRAN
        && result as i32 == 0
    {
        let tag = crate::pmpi::pointer(a.at(1)).cast();
        // SAFETY: the program passes a text that ends with zero.
        let tag = unsafe { core::ffi::CStr::from_ptr(tag) };
        // SAFETY: the call has made the communicator.
        let new = unsafe { B::new_communicator(a.at(4)) };
        thread.quietly(|| communicators::made_from_group(thread, &tag.to_string_lossy(), new));
    }
    result
}

/// Frees a communicator. Requests in it keep its number.
pub(crate) unsafe fn forget<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    communicators::remove(unsafe { B::new_communicator(a.at(0)) });
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    span.leave(unsafe { B::failed(result, a.last()) }, ticks);
    result
}
