//! Collective operations on neighbors: each member sends a message to each of its destinations, and receives one from each of its
//! sources.

use downbeat_recording::{Envelope, Record};

use super::message::persistent;
use super::{Data, Span, forward, made_request};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::communicators::{self, Neighbors};
use crate::constants::PROC_NULL;
use crate::exchanges::{Exchange, ExchangeKey};
use crate::requests::{self, Pending, Request};
use crate::thread::Thread;

/// Positions of the parameters of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    sent: Data,
    received: Data,
    communicator: usize,
}

impl Data {
    /// Returns the messages with these peers.
    unsafe fn messages<B: Binding>(
        self,
        a: &impl Arguments,
        communicator: u32,
        peers: &[i32],
    ) -> Vec<Envelope> {
        let all = peers.iter().enumerate();
        let real = all.filter(|(_, peer)| **peer != PROC_NULL);
        real.map(|(index, peer)| Envelope {
            communicator,
            peer: *peer,
            tag: 0,
            // SAFETY: the caller passes the arguments of the function, whose arrays have an element for each peer.
            bytes: Some(unsafe { self.length::<B>(a, index) }),
        })
        .collect()
    }
}

impl Layout {
    /// Returns the positions of what is sent and received, and of the communicator.
    pub(crate) const fn new(sent: Data, received: Data, communicator: usize) -> Self {
        Self {
            sent,
            received,
            communicator,
        }
    }

    /// Returns the messages of a call.
    unsafe fn exchange<B: Binding>(&self, thread: &Thread, a: &impl Arguments) -> Exchange {
        // SAFETY: the caller passes the arguments of the function.
        let communicator = unsafe { B::communicator(a.at(self.communicator)) };
        let found = communicators::with_neighbors(thread, communicator);
        let Some(Neighbors {
            number,
            sources,
            destinations,
        }) = found.as_ref().and_then(|found| found.neighbors())
        else {
            return Exchange::default();
        };
        thread.quietly(|| Exchange {
            // SAFETY: as above.
            sent: unsafe { self.sent.messages::<B>(a, *number, destinations) },
            // SAFETY: as above.
            received: unsafe { self.received.messages::<B>(a, *number, sources) },
        })
    }
}

impl ExchangeKey {
    /// Records that a started request sends its messages.
    pub(super) fn send(self, span: Span) {
        self.find().iter().for_each(|of| of.send(span));
    }

    /// Records the receives of a started request.
    pub(super) fn post(self, span: Span, first: u64) {
        for request in self.ids(first) {
            span.put(&Record::receive_posted(request));
        }
    }

    fn cancel(self, span: Span, first: u64) {
        for request in self.ids(first) {
            span.put(&Record::receive_cancelled(request));
        }
    }

    /// Records the end of a request.
    pub(super) fn end(self, span: Span, request: Request, failed: bool) {
        match self.find().filter(|_| !failed) {
            Some(of) => {
                for (message, request) in of.received.iter().zip(self.ids(request.id)) {
                    span.put(&Record::receive_completed(*message, request));
                }
            }
            None => self.cancel(span, request.id),
        }
        if !request.is_persistent {
            self.remove();
        }
    }

    /// Forgets a request that is freed.
    pub(super) fn free(self, span: Span, request: Request) {
        if request.is_active {
            self.cancel(span, request.id);
        }
        self.remove();
    }
}

impl Exchange {
    fn send(&self, span: Span) {
        for message in &self.sent {
            span.put(&Record::message_sent(*message));
        }
    }
}

/// Calls a blocking operation on neighbors.
pub(crate) unsafe fn neighbors<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    layout: &Layout,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let exchange = unsafe { layout.exchange::<B>(thread, &a) };
    let span = Span::enter(thread, call, None);
    exchange.send(span);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    for message in exchange.received.iter().filter(|_| !failed) {
        span.put(&Record::message_received(*message));
    }
    span.leave(failed, ticks);
    result
}

/// Starts an operation on neighbors; `request` is a position.
pub(crate) unsafe fn neighbors_start<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    layout: &Layout,
    request: usize,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let exchange = unsafe { layout.exchange::<B>(thread, &a) };
    let span = Span::enter(thread, call, None);
    exchange.send(span);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    // SAFETY: the call has made the request.
    if !failed && let Some(handle) = unsafe { made_request::<B>(a.at(request)) } {
        let exchange = ExchangeKey::keep(exchange);
        let what = Pending::Exchange(exchange);
        let id = thread.next_requests(what.ids());
        exchange.post(span, id);
        requests::add(handle, Request::active(what, id));
    }
    span.leave(failed, ticks);
    result
}

/// Makes a persistent operation on neighbors; `request` is a position.
pub(crate) unsafe fn neighbors_init<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    layout: &Layout,
    request: usize,
) -> usize {
    let what = |thread: &Thread| {
        // SAFETY: the caller passes the arguments of the function.
        Pending::Exchange(ExchangeKey::keep(unsafe {
            layout.exchange::<B>(thread, &a)
        }))
    };
    // SAFETY: as above.
    unsafe { persistent::<B, A>(call, a, request, what) }
}
