//! Calls that make and free communicators.

use super::TracedCall;
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::binding::HandleKind::Communicator;
#[cfg(mpi_4)]
use crate::binding::integer_at;
use crate::communicators::{self, Origin};

/// Makes a communicator from the first argument; the tag of its origin and `new` are positions.
pub(crate) unsafe fn make<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    origin: Origin<usize>,
    new: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let parent = communicators::find(unsafe { B::handle(Communicator, a.at(0)) });
    // SAFETY: as above.
    let origin = origin.map(|at| unsafe { B::integer(a.at(at)) });
    let index = match (&parent, origin) {
        (Some(parent), Origin::Parent | Origin::Copy) => communicators::count(parent),
        _ => 0,
    };
    // SAFETY: as above.
    let done = unsafe { call.record::<B>(a) };
    if let Some(parent) = parent
        && !done.failed()
    {
        // SAFETY: the call has made the communicator, or none for this rank.
        let new = unsafe { B::handle_at(Communicator, a.at(new), 0) };
        let thread = call.thread;
        thread.quietly(|| communicators::made(thread, &parent, origin, index, new));
    }
    done.result
}

/// Makes a communicator from a group, or from two; `tag` and `new` are positions.
#[cfg(mpi_4)]
pub(crate) unsafe fn make_from_group<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    tag: usize,
    new: usize,
) -> usize {
    let span = call.enter(None);
    // In Fortran the length of the tag follows the error code, which programs with mpi_f08 can leave out.
    let code = |result| match a.at(new + 1) {
        _ if !B::IS_FORTRAN => result as i32,
        0 => 0,
        // SAFETY: the caller passes the arguments of the function.
        error => unsafe { integer_at(error, 0) },
    };
    // SAFETY: as above.
    let done = unsafe { span.forward_with::<B>(a, code) };
    span.leave(done);
    if !done.failed() {
        // SAFETY: as above.
        let tag = unsafe { text::<B>(a.at(tag), a.at(new + 2)) };
        // SAFETY: the call has made the communicator.
        let new = unsafe { B::handle_at(Communicator, a.at(new), 0) };
        let thread = call.thread;
        thread.quietly(|| communicators::made_from_group(thread, &tag, new));
    }
    done.result
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
pub(crate) unsafe fn forget<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    communicators::remove(unsafe { B::handle_at(Communicator, a.at(0), 0) });
    // SAFETY: as above.
    unsafe { call.record::<B>(a) }.result
}
