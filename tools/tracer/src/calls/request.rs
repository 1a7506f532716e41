//! Starts, cancellations and ends of requests.

use downbeat_recording::Record;

use super::{Span, TracedCall};
use crate::arguments::Arguments;
use crate::binding::{Binding, HandleKind};
use crate::constants::Handle;
use crate::requests::{self, Pending};

/// Starts a persistent request.
pub(crate) unsafe fn start<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    unsafe { started::<B>(call, a, 1, a.at(0)) }
}

/// Starts persistent requests.
pub(crate) unsafe fn start_all<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let count = unsafe { B::integer(a.at(0)) };
    // SAFETY: as above.
    unsafe { started::<B>(call, a, count, a.at(1)) }
}

unsafe fn started<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    count: i32,
    list: usize,
) -> usize {
    let span = call.enter(None);
    for index in 0..count.max(0) as usize {
        // SAFETY: the caller passes the arguments of the function.
        begin(span, unsafe {
            B::handle_at(HandleKind::Request, list, index)
        });
    }
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    // Receives are posted by then.
    for index in 0..count.max(0) as usize {
        // SAFETY: as above.
        let request = requests::find(unsafe { B::handle_at(HandleKind::Request, list, index) });
        match request.map(|request| (request.what, request.id)) {
            Some((Pending::Receive(Some(_)), id)) if !done.failed() => {
                span.put(&Record::receive_posted(id));
            }
            Some((Pending::Exchange(exchange), id)) if !done.failed() => exchange.post(span, id),
            _ => {}
        }
    }
    span.leave(done)
}

fn begin(span: Span, handle: Handle) {
    let request = requests::change(handle, |request| {
        request.id = span.call.thread.next_requests(request.what.ids());
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
pub(crate) unsafe fn cancel<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let handle = unsafe { B::handle_at(HandleKind::Request, a.at(0), 0) };
    requests::change(handle, |request| request.is_cancelled = true);
    // SAFETY: as above.
    unsafe { super::region::<B>(call, a) }
}

/// Frees a request: the completion of a receive is never seen.
pub(crate) unsafe fn request_free<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let request = requests::remove(unsafe { B::handle_at(HandleKind::Request, a.at(0), 0) });
    let span = call.enter(None);
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    if let Some(request) = request {
        match request.what {
            Pending::Receive(Some(_)) if request.is_active => {
                span.put(&Record::receive_cancelled(request.id));
            }
            Pending::Exchange(exchange) => exchange.free(span, request),
            _ => {}
        }
    }
    span.leave(done)
}
