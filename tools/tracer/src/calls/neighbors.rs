//! Collective operations on neighbors: each member sends a message to each of its destinations, and receives one from each of its
//! sources.

use downbeat_recording::{Envelope, Record};

use super::message::persistent;
use super::{Data, Span, TracedCall};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::binding::HandleKind::Communicator;
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
        let communicator = unsafe { B::handle(Communicator, a.at(self.communicator)) };
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
        if let Some(of) = self.find() {
            span.send(of.sent.iter().copied());
        }
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

/// Calls a blocking operation on neighbors.
pub(crate) unsafe fn neighbors<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    layout: &Layout,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let exchange = unsafe { layout.exchange::<B>(call.thread, &a) };
    let span = call.enter(None);
    span.send(exchange.sent.iter().copied());
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    for message in exchange.received.iter().filter(|_| !done.failed()) {
        span.put(&Record::message_received(*message));
    }
    span.leave(done)
}

/// Starts an operation on neighbors; its request follows the communicator.
pub(crate) unsafe fn neighbors_start<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    layout: &Layout,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let exchange = unsafe { layout.exchange::<B>(call.thread, &a) };
    let span = call.enter(None);
    span.send(exchange.sent.iter().copied());
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    // SAFETY: the call has made the request.
    if let Some(handle) = unsafe { done.request::<B>(a.at(layout.communicator + 1)) } {
        let exchange = ExchangeKey::keep(exchange);
        let what = Pending::Exchange(exchange);
        let id = call.thread.next_requests(what.ids());
        exchange.post(span, id);
        requests::add(handle, Request::active(what, id));
    }
    span.leave(done)
}

/// Makes a persistent operation on neighbors; an info object and its request follow the communicator.
pub(crate) unsafe fn neighbors_init<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    layout: &Layout,
) -> usize {
    let what = || {
        // SAFETY: the caller passes the arguments of the function.
        Pending::Exchange(ExchangeKey::keep(unsafe {
            layout.exchange::<B>(call.thread, &a)
        }))
    };
    // SAFETY: as above.
    unsafe { persistent::<B>(call, a, layout.communicator + 2, what) }
}
