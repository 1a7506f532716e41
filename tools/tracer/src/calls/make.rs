//! Calls that make and free communicators.

use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::Binding;
#[cfg(mpi_4)]
use crate::binding::integer_at;
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

/// Makes a communicator from a group, or from two; `tag` and `new` are positions.
#[cfg(mpi_4)]
pub(crate) unsafe fn make_from_group<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    tag: usize,
    new: usize,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // In Fortran the length of the tag follows the error code, which programs with mpi_f08 can leave out.
    let failed = if B::IS_FORTRAN {
        let error = a.at(new + 1);
        // SAFETY: as above.
        error != 0 && unsafe { integer_at(error, 0) } != 0
    } else {
        result as i32 != 0
    };
    span.leave(failed, ticks);
    if !failed {
        // SAFETY: as above.
        let tag = unsafe { text::<B>(a.at(tag), a.at(new + 2)) };
        // SAFETY: the call has made the communicator.
        let new = unsafe { B::new_communicator(a.at(new)) };
        thread.quietly(|| communicators::made_from_group(thread, &tag, new));
    }
    result
}

/// Reads a text: in C it ends with zero, and in Fortran it has this length and ends with spaces.
#[cfg(mpi_4)]
unsafe fn text<B: Binding>(argument: usize, length: usize) -> String {
    use core::ffi::CStr;

    use crate::pmpi::pointer;

    if B::IS_FORTRAN {
        // SAFETY: the caller passes a text of this length.
        let bytes = unsafe { core::slice::from_raw_parts(pointer(argument).cast(), length) };
        return String::from_utf8_lossy(bytes).trim_end().to_owned();
    }
    // SAFETY: the caller passes a text that ends with zero.
    let text = unsafe { CStr::from_ptr(pointer(argument).cast()) };
    text.to_string_lossy().into_owned()
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
