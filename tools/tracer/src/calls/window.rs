//! Windows: calls that make and free them, and synchronize their members.
//!
//! Only what MPI guarantees is recorded as a relation: the end of an exposure epoch waits for the ends of the access epochs. That an
//! access epoch waits for the exposure is not certain: a library may keep the data until the target exposes its memory.

use downbeat_recording::{Envelope, Operation, Record};
use downbeat_trace::CollectiveKind;

use super::one_sided::completed;
use super::probe::awaited;
use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::communicators;
use crate::thread::Thread;
use crate::windows::{self, Epoch};

/// Returns the operation that a member takes part in. Members that do not wait for each other neither send nor receive.
const fn operation(communicator: u32, waits: bool) -> Operation {
    Operation {
        communicator,
        // The data of each member of this one decide.
        kind: CollectiveKind::Allreduce,
        root: 0,
        sent: waits,
        received: waits,
        bytes: Some(0),
    }
}

/// Returns a message that only tells that a member is ready.
const fn notice(communicator: u32, peer: i32) -> Envelope {
    Envelope {
        communicator,
        peer,
        tag: 0,
        bytes: Some(0),
    }
}

/// Makes a window; `communicator` and `window` are positions.
pub(crate) unsafe fn make_window<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    communicator: usize,
    window: usize,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let parent = communicators::find(unsafe { B::communicator(a.at(communicator)) });
    let index = parent.as_deref().map_or(0, communicators::count);
    // If the call fails, this is the number of no communicator, and there is no operation.
    let number = communicators::next_number();
    let span = Span::enter(thread, call, Some(number));
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    span.put(&Record::operation_ended(operation(number, !failed), None));
    span.leave(failed, ticks);
    if let Some(parent) = parent
        && !failed
    {
        // SAFETY: the call has made the window.
        let new = unsafe { B::new_window(a.at(window)) };
        thread.quietly(|| {
            communicators::made_window(thread, &parent, index, number, new);
            windows::add(new);
        });
    }
    result
}

/// Frees a window.
pub(crate) unsafe fn free_window<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let window = unsafe { B::new_window(a.at(0)) };
    let number = communicators::number(window);
    communicators::remove(window);
    let waits = windows::remove(window);
    // SAFETY: as above.
    unsafe { collective::<B, A>(thread, call, a, number, waits) }
}

/// Ends the epoch of all members, and begins the next one.
pub(crate) unsafe fn fence<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let window = unsafe { B::window(a.at(1)) };
    // SAFETY: as above.
    let assertion = unsafe { B::integer(a.at(0)) };
    let number = communicators::number(window);
    let waits = windows::fence(window, assertion);
    // SAFETY: as above.
    unsafe { collective::<B, A>(thread, call, a, number, waits) }
}

/// Calls a function of all members of a window, which completes their accesses.
unsafe fn collective<B: Binding, A: Arguments>(
    thread: &'static Thread,
    call: &'static Call,
    a: A,
    window: u32,
    waits: bool,
) -> usize {
    let span = Span::enter(thread, call, Some(window));
    // SAFETY: the caller passes the arguments of the function.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    if !failed {
        completed(span, window, None);
    }
    // SAFETY: as above.
    if unsafe { B::took_part(result, a.last()) } {
        let operation = operation(window, waits && !failed);
        span.put(&Record::operation_ended(operation, None));
    }
    span.leave(failed, ticks);
    result
}

/// Begins an epoch with the members of a group.
pub(crate) unsafe fn open_epoch<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    epoch: Epoch,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let result = unsafe { super::region::<B, A>(call, a) };
    if let Some(thread) = Thread::current()
        // SAFETY: as above.
        && !unsafe { B::failed(result, a.last()) }
    {
        // SAFETY: as above.
        let [group, window] = [unsafe { B::group(a.at(0)) }, unsafe { B::window(a.at(2)) }];
        thread.quietly(|| windows::open(window, epoch, group));
    }
    result
}

/// Ends an access epoch: the targets learn of it.
pub(crate) unsafe fn end_access<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let handle = unsafe { B::window(a.at(0)) };
    let window = communicators::number(handle);
    let span = Span::enter(thread, call, None);
    for target in windows::close(handle, Epoch::Access) {
        span.put(&Record::message_sent(notice(window, target)));
    }
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    if !failed {
        completed(span, window, None);
    }
    span.leave(failed, ticks);
    result
}

/// Waits for the end of an exposure epoch, or tests for it; `flag` is the position of the answer of the test.
pub(crate) unsafe fn end_exposure<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    flag: Option<usize>,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let handle = unsafe { B::window(a.at(0)) };
    // SAFETY: as above.
    let (result, span) = unsafe { awaited::<B, A>(thread, call, a, flag) };
    let Some(span) = span else {
        return result;
    };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    if !failed {
        let window = communicators::number(handle);
        for origin in windows::close(handle, Epoch::Exposure) {
            span.put(&Record::message_received(notice(window, origin)));
        }
    }
    span.leave(failed, ticks);
    result
}
