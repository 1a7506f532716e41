//! Windows: calls that make and free them, and synchronize their members.
//!
//! Only what MPI guarantees is recorded as a relation: the end of an exposure epoch waits for the ends of the access epochs. That an
//! access epoch waits for the exposure is not certain: a library may keep the data until the target exposes its memory.

use downbeat_recording::{Envelope, Operation, Record};
use downbeat_trace::CollectiveKind;

use super::TracedCall;
use super::one_sided::completed;
use super::probe::awaited;
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::binding::HandleKind::{Communicator, Group, Window};
use crate::communicators;
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
pub(crate) unsafe fn make_window<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    communicator: usize,
    window: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let parent = communicators::find(unsafe { B::handle(Communicator, a.at(communicator)) });
    let index = parent.as_deref().map_or(0, communicators::count);
    // If the call fails, this is the number of no communicator, and there is no operation.
    let number = communicators::next_number();
    let span = call.enter(Some(number));
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    span.put(&Record::operation_ended(
        operation(number, !done.failed()),
        None,
    ));
    span.leave(done);
    if let Some(parent) = parent
        && !done.failed()
    {
        // SAFETY: the call has made the window.
        let new = unsafe { B::handle_at(Window, a.at(window), 0) };
        let thread = call.thread;
        thread.quietly(|| {
            communicators::made_window(thread, &parent, index, number, new);
            windows::add(new);
        });
    }
    done.result
}

/// Frees a window.
pub(crate) unsafe fn free_window<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let window = unsafe { B::handle_at(Window, a.at(0), 0) };
    let number = communicators::number(window);
    communicators::remove(window);
    let waits = windows::remove(window);
    // SAFETY: as above.
    unsafe { collective::<B>(call, a, number, waits) }
}

/// Ends the epoch of all members, and begins the next one.
pub(crate) unsafe fn fence<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let window = unsafe { B::handle(Window, a.at(1)) };
    // SAFETY: as above.
    let assertion = unsafe { B::integer(a.at(0)) };
    let number = communicators::number(window);
    let waits = windows::fence(window, assertion);
    // SAFETY: as above.
    unsafe { collective::<B>(call, a, number, waits) }
}

/// Calls a function of all members of a window, which completes their accesses.
unsafe fn collective<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    window: u32,
    waits: bool,
) -> usize {
    let span = call.enter(Some(window));
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { span.forward::<B>(a) };
    if !done.failed() {
        completed(span, window, None);
    }
    if done.took_part() {
        let operation = operation(window, waits && !done.failed());
        span.put(&Record::operation_ended(operation, None));
    }
    span.leave(done)
}

/// Begins an epoch with the members of a group.
pub(crate) unsafe fn open_epoch<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    epoch: Epoch,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { call.record::<B>(a) };
    if !done.failed() {
        // SAFETY: as above.
        let [group, window] = [unsafe { B::handle(Group, a.at(0)) }, unsafe {
            B::handle(Window, a.at(2))
        }];
        call.thread.quietly(|| windows::open(window, epoch, group));
    }
    done.result
}

/// Ends an access epoch: the targets learn of it.
pub(crate) unsafe fn end_access<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let handle = unsafe { B::handle(Window, a.at(0)) };
    let window = communicators::number(handle);
    let span = call.enter(None);
    let targets = windows::close(handle, Epoch::Access).into_iter();
    span.send(targets.map(|target| notice(window, target)));
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    if !done.failed() {
        completed(span, window, None);
    }
    span.leave(done)
}

/// Waits for the end of an exposure epoch, or tests for it; `flag` is the position of the answer of the test.
pub(crate) unsafe fn end_exposure<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    flag: Option<usize>,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let handle = unsafe { B::handle(Window, a.at(0)) };
    // SAFETY: as above.
    let (done, span) = unsafe { awaited::<B>(call, a, flag) };
    let Some(span) = span else {
        return done.result;
    };
    if !done.failed() {
        let window = communicators::number(handle);
        for origin in windows::close(handle, Epoch::Exposure) {
            span.put(&Record::message_received(notice(window, origin)));
        }
    }
    span.leave(done)
}
