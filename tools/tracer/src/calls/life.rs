//! Begin and end of MPI.

use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::constants::ERR_SPAWN;
use crate::failure::say;
use crate::thread::Thread;
use crate::{communicators, pmpi, synchronize};

/// Initializes MPI, and synchronizes the clocks.
pub(crate) unsafe fn initialize<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    span.leave(failed, ticks);
    if !failed {
        thread.quietly(|| communicators::begin(thread));
        synchronize::begin(thread, synchronize::rank());
        thread.measure_cost();
    }
    result
}

/// Finalizes MPI. Callbacks of attributes may communicate inside.
pub(crate) unsafe fn finalize<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    synchronize::again(thread);
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    span.leave(unsafe { B::failed(result, a.last()) }, ticks);
    thread.tell_dropped();
    result
}

/// Opens a session; its handle is at this position.
#[cfg(mpi_4)]
pub(crate) unsafe fn session<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    session: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let result = unsafe { super::region::<B, A>(call, a) };
    if let Some(thread) = Thread::current()
        // SAFETY: as above.
        && !unsafe { B::failed(result, a.last()) }
    {
        // Sessions are handles as communicators are.
        // SAFETY: the call has set it.
        let session = unsafe { B::new_communicator(a.at(session)) };
        if thread.quietly(|| communicators::begin_session(thread, session)) {
            synchronize::define_clock(thread, None);
        }
    }
    result
}

/// Refuses to start further processes, whose clocks would not be synchronized; the communicator is at this position.
pub(crate) unsafe fn spawn<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    communicator: usize,
) -> usize {
    if Thread::of(call).is_none() {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    }
    let name = call.name().to_string_lossy();
    say(&format!(
        "{name}: processes that are spawned cannot be traced"
    ));
    // SAFETY: as above.
    let communicator = unsafe { B::communicator(a.at(communicator)) };
    // SAFETY: the program passes a communicator. By default, this ends the program.
    unsafe { pmpi::comm_call_errhandler(communicator, ERR_SPAWN as usize) };
    if B::IS_FORTRAN {
        // SAFETY: the last argument is the error code.
        unsafe { pmpi::pointer(a.last()).cast::<i32>().write(ERR_SPAWN) };
    }
    ERR_SPAWN as usize
}
