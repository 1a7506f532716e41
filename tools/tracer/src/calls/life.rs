//! Begin and end of MPI.

use super::TracedCall;
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::binding::HandleKind::Communicator;
use crate::constants::{ERR_SPAWN, comm_world};
use crate::failure::say;
use crate::{communicators, pmpi, synchronize};

/// Initializes MPI, and synchronizes the clocks.
pub(crate) unsafe fn initialize<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { call.record::<B>(a) };
    let thread = call.thread;
    if !done.failed() {
        thread.quietly(|| communicators::begin(thread));
        // SAFETY: the call has initialized MPI.
        synchronize::begin(thread, unsafe { pmpi::comm_rank(comm_world()) });
        thread.measure_cost();
    }
    done.result
}

/// Finalizes MPI. Callbacks of attributes may communicate inside.
pub(crate) unsafe fn finalize<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    synchronize::again(call.thread);
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { call.record::<B>(a) };
    call.thread.tell_dropped();
    done.result
}

/// Opens a session; its handle is at this position.
#[cfg(mpi_4)]
pub(crate) unsafe fn session<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    session: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { call.record::<B>(a) };
    let thread = call.thread;
    if !done.failed() {
        // Sessions are handles as communicators are.
        // SAFETY: the call has set it.
        let session = unsafe { B::handle_at(Communicator, a.at(session), 0) };
        if thread.quietly(|| communicators::begin_session(thread, session)) {
            synchronize::define_clock(thread, None);
        }
    }
    done.result
}

/// Refuses to start further processes, whose clocks would not be synchronized; the communicator is at this position.
pub(crate) unsafe fn spawn<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    communicator: usize,
) -> usize {
    let name = call.function.name().to_string_lossy();
    say(&format!(
        "{name}: processes that are spawned cannot be traced"
    ));
    // SAFETY: the caller passes the arguments of the function.
    let communicator = unsafe { B::handle(Communicator, a.at(communicator)) };
    // SAFETY: the program passes a communicator. By default, this ends the program.
    unsafe { pmpi::comm_call_errhandler(communicator, ERR_SPAWN as usize) };
    if B::IS_FORTRAN {
        // SAFETY: the last argument is the error code.
        unsafe { pmpi::pointer(a.last()).cast::<i32>().write(ERR_SPAWN) };
    }
    ERR_SPAWN as usize
}
