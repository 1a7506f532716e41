//! Messages: sends and receives.

use downbeat_recording::{Envelope, Record};

use super::TracedCall;
use crate::arguments::Arguments;
use crate::binding::HandleKind::{Communicator, Datatype};
use crate::binding::{Binding, HandleKind, bytes, received_bytes, status_at};
use crate::communicators;
use crate::constants::{ANY_SOURCE, ANY_TAG, PROC_NULL, Status};
use crate::pmpi::out;
use crate::requests::{self, Pending, Request, Wanted};

/// Returns the message that a send sends; `None` if it goes to nobody. The arguments begin with count and datatype at 1.
unsafe fn outgoing<B: Binding>(a: impl Arguments, communicator: usize) -> Option<Envelope> {
    // SAFETY: the caller passes the arguments of a send.
    let peer = unsafe { B::integer(a.at(3)) };
    if peer == PROC_NULL {
        return None;
    }
    // SAFETY: as above.
    let [count, datatype] = [unsafe { B::count(a.at(1)) } as usize, unsafe {
        B::handle(Datatype, a.at(2))
    }];
    Some(Envelope {
        // SAFETY: as above.
        communicator: communicators::number(unsafe { B::handle(Communicator, a.at(communicator)) }),
        peer,
        // SAFETY: as above.
        tag: unsafe { B::integer(a.at(4)) },
        bytes: Some(bytes(count as i64, datatype)),
    })
}

/// Puts a status in the place of one that the program ignores, and returns the argument that counts.
pub(super) unsafe fn keep_status<B: Binding>(
    a: &mut impl Arguments,
    index: usize,
    own: &mut Status,
) -> usize {
    // SAFETY: the caller passes the index of a status.
    if unsafe { B::is_ignored(a.at(index)) } {
        a.set(index, out(own));
    }
    a.at(index)
}

/// Returns the message of a receive; `None` if nothing tells its sender or its tag.
pub(super) fn incoming(wanted: Wanted, status: &mut Status) -> Option<Envelope> {
    let (any_source, any_tag) = (wanted.source == ANY_SOURCE, wanted.tag == ANY_TAG);
    if !wanted.has_status && (any_source || any_tag) {
        return None;
    }
    // What the receive asked for is certain: MPICH 4.0 has faults in statuses.
    let known = |is_any, wanted, found| if is_any { found } else { wanted };
    Some(Envelope {
        communicator: wanted.communicator,
        peer: known(any_source, wanted.source, status.source()),
        tag: known(any_tag, wanted.tag, status.tag()),
        bytes: wanted.has_status.then(|| received_bytes(status)),
    })
}

/// Returns what a receive asks for, by the positions of source, tag and communicator; `None` from nobody.
pub(super) unsafe fn wanted<B: Binding>(
    a: &impl Arguments,
    [source, tag, communicator]: [usize; 3],
) -> Option<Wanted> {
    // SAFETY: the caller passes the arguments of a receive.
    let source = unsafe { B::integer(a.at(source)) };
    if source == PROC_NULL {
        return None;
    }
    Some(Wanted {
        // SAFETY: as above.
        communicator: communicators::number(unsafe { B::handle(Communicator, a.at(communicator)) }),
        source,
        // SAFETY: as above.
        tag: unsafe { B::integer(a.at(tag)) },
        has_status: true,
    })
}

/// Sends, also without waiting.
pub(crate) unsafe fn send<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let message = unsafe { outgoing::<B>(a, 5) };
    let span = call.enter(None);
    span.send(message);
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    span.leave(done)
}

/// Receives.
pub(crate) unsafe fn receive<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let wanted = unsafe { wanted::<B>(&a, [3, 4, 5]) };
    // SAFETY: as above.
    unsafe { received::<B>(call, a, (None, wanted), 6) }
}
/// Sends and receives; `source`, `communicator` and `status` are positions.
pub(crate) unsafe fn send_receive<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    source: usize,
    communicator: usize,
    status: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let message = unsafe { outgoing::<B>(a, communicator) };
    // SAFETY: as above. The tag of the receive follows its source.
    let wanted = unsafe { wanted::<B>(&a, [source, source + 1, communicator]) };
    // SAFETY: as above.
    unsafe { received::<B>(call, a, (message, wanted), status) }
}

/// Calls a function that sends a message or none, and receives what is wanted, if anything; its status is at this position.
pub(super) unsafe fn received<B: Binding>(
    call: TracedCall,
    mut a: impl Arguments,
    (message, wanted): (Option<Envelope>, Option<Wanted>),
    status: usize,
) -> usize {
    let mut own = Status::EMPTY;
    // SAFETY: the caller passes the arguments of the function.
    let status = unsafe { keep_status::<B>(&mut a, status, &mut own) };
    let span = call.enter(None);
    span.send(message);
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    if let Some(wanted) = wanted.filter(|_| !done.failed()) {
        // SAFETY: the call has filled it.
        let mut status = unsafe { status_at(status, 0) };
        if let Some(message) = incoming(wanted, &mut status) {
            span.put(&Record::message_received(message));
        }
    }
    span.leave(done)
}

/// Posts a receive.
pub(crate) unsafe fn post<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let wanted = unsafe { wanted::<B>(&a, [3, 4, 5]) };
    // SAFETY: as above.
    unsafe { posted::<B>(call, a, (None, wanted), 6) }
}

/// Sends and posts a receive without waiting, as MPI 4 can; the positions are those of
/// source, tag and communicator of the receive, and of the request.
#[cfg(mpi_4)]
pub(crate) unsafe fn send_post<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    receive: [usize; 3],
    request: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let message = unsafe { outgoing::<B>(a, receive[2]) };
    // SAFETY: as above.
    let mut wanted = unsafe { wanted::<B>(&a, receive) };
    if let Some(wanted) = &mut wanted {
        // MPICH makes a schedule of the two, whose request never gets the status of the
        // receive.
        wanted.has_status = cfg!(open_mpi) || message.is_none();
    }
    // SAFETY: as above.
    unsafe { posted::<B>(call, a, (message, wanted), request) }
}

/// Calls a function that sends a message or none, and posts a receive; its request is at this position.
pub(super) unsafe fn posted<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    (message, wanted): (Option<Envelope>, Option<Wanted>),
    request: usize,
) -> usize {
    let span = call.enter(None);
    span.send(message);
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { span.forward::<B>(a) };
    // SAFETY: the call has made the request.
    if let Some(handle) = unsafe { done.request::<B>(a.at(request)) } {
        let request = Request::active(Pending::Receive(wanted), call.thread.next_request());
        if wanted.is_some() {
            span.put(&Record::receive_posted(request.id));
        }
        requests::add(handle, request);
    }
    span.leave(done)
}

/// Calls a function that makes a persistent request, and keeps what it is to do.
pub(super) unsafe fn persistent<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    request: usize,
    what: impl FnOnce() -> Pending,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { call.record::<B>(a) };
    if !done.failed() {
        // SAFETY: the call has made the request.
        let handle = unsafe { B::handle_at(HandleKind::Request, a.at(request), 0) };
        requests::add(handle, Request::persistent(what()));
    }
    done.result
}

/// Makes a persistent send.
pub(crate) unsafe fn send_init<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let what = || Pending::Send(unsafe { outgoing::<B>(a, 5) });
    // SAFETY: as above.
    unsafe { persistent::<B>(call, a, 6, what) }
}

/// Makes a partitioned send, which counts as one message.
#[cfg(mpi_4)]
pub(crate) unsafe fn partitioned_send_init<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
) -> usize {
    let what = || {
        // SAFETY: the caller passes the arguments of the function.
        let peer = unsafe { B::integer(a.at(4)) };
        if peer == PROC_NULL {
            return Pending::Send(None);
        }
        // SAFETY: as above.
        let parts = unsafe { B::integer(a.at(1)) };
        // SAFETY: as above.
        let tag = unsafe { B::integer(a.at(5)) };
        // SAFETY: as above. The count has 64 bits in any case.
        let (count, datatype) = unsafe { (a.at(2) as i64, B::handle(Datatype, a.at(3))) };
        Pending::Send(Some(Envelope {
            // SAFETY: as above.
            communicator: communicators::partitioned(call.thread, unsafe {
                B::handle(Communicator, a.at(6))
            }),
            peer,
            tag,
            bytes: Some(bytes(i64::from(parts).saturating_mul(count), datatype)),
        }))
    };
    // SAFETY: as above.
    unsafe { persistent::<B>(call, a, 8, what) }
}

/// Makes a persistent receive.
pub(crate) unsafe fn receive_init<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let what = || Pending::Receive(unsafe { wanted::<B>(&a, [3, 4, 5]) });
    // SAFETY: as above.
    unsafe { persistent::<B>(call, a, 6, what) }
}

/// Makes a partitioned receive, which counts as one message.
#[cfg(mpi_4)]
pub(crate) unsafe fn partitioned_receive_init<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
) -> usize {
    let what = || {
        // SAFETY: the caller passes the arguments of the function.
        let wanted = unsafe { wanted::<B>(&a, [4, 5, 6]) };
        Pending::Receive(wanted.map(|wanted| Wanted {
            // SAFETY: as above.
            communicator: communicators::partitioned(call.thread, unsafe {
                B::handle(Communicator, a.at(6))
            }),
            ..wanted
        }))
    };
    // SAFETY: as above.
    unsafe { persistent::<B>(call, a, 8, what) }
}
