//! Starts, cancellations and ends of requests.

use downbeat_recording::Record;

use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::constants::Handle;
use crate::requests::{self, Pending};
use crate::thread::Thread;

/// Starts a persistent request.
pub(crate) unsafe fn start<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    unsafe { started::<B, A>(call, a, 1, a.at(0)) }
}

/// Starts persistent requests.
pub(crate) unsafe fn start_all<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let count = unsafe { B::integer(a.at(0)) };
    // SAFETY: as above.
    unsafe { started::<B, A>(call, a, count, a.at(1)) }
}

unsafe fn started<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    count: i32,
    list: usize,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    let span = Span::enter(thread, call, None);
    for index in 0..count.max(0) as usize {
        // SAFETY: as above.
        begin(span, thread, unsafe { B::request(list, index) });
    }
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    // Receives are posted by then.
    for index in 0..count.max(0) as usize {
        // SAFETY: as above.
        let request = requests::find(unsafe { B::request(list, index) });
        match request.map(|request| (request.what, request.id)) {
            Some((Pending::Receive(Some(_)), id)) if !failed => {
                span.put(&Record::receive_posted(id));
            }
            Some((Pending::Exchange(exchange), id)) if !failed => exchange.post(span, id),
            _ => {}
        }
    }
    span.leave(failed, ticks);
    result
}

fn begin(span: Span, thread: &Thread, handle: Handle) {
    let request = requests::change(handle, |request| {
        request.id = thread.next_requests(request.what.ids());
        (request.is_active, request.is_cancelled) = (true, false);
    });
    match request.map(|request| (request.what, request.id)) {
        Some((Pending::Send(Some(message)), _)) => span.put(&Record::message_sent(message)),
        Some((Pending::Collective(operation), request)) => {
            span.put(&Record::operation_started(operation.communicator, request));
        }
        Some((Pending::Exchange(exchange), _)) => exchange.send(span),
        _ => {}
    }
}

/// Cancels a request: its completion tells if that succeeded.
pub(crate) unsafe fn cancel<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    if Thread::current().is_some() {
        // SAFETY: the caller passes the arguments of the function.
        let handle = unsafe { B::request(a.at(0), 0) };
        requests::change(handle, |request| request.is_cancelled = true);
    }
    // SAFETY: as above.
    unsafe { super::region::<B, A>(call, a) }
}

/// Frees a request: the completion of a receive is never seen.
pub(crate) unsafe fn request_free<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let request = requests::remove(unsafe { B::request(a.at(0), 0) });
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    if let Some(request) = request {
        match request.what {
            Pending::Receive(Some(_)) if request.is_active => {
                span.put(&Record::receive_cancelled(request.id));
            }
            Pending::Exchange(exchange) => exchange.free(span, request),
            _ => {}
        }
    }
    // SAFETY: as above.
    span.leave(unsafe { B::failed(result, a.last()) }, ticks);
    result
}
