//! Collective operations.

use downbeat_recording::{Operation, Record};
use downbeat_trace::CollectiveKind;

use super::message::persistent;
use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::communicators;
use crate::constants::request_null;
use crate::pmpi::{self, out};
use crate::requests::{self, Pending, Request};
use crate::synchronize;
use crate::thread::Thread;

/// Kind of an operation, and positions of its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    kind: CollectiveKind,
    communicator: usize,
    root: Option<usize>,
    /// Number of elements of a member that is not the root.
    count: Option<usize>,
}

impl Shape {
    pub(crate) const fn new(kind: CollectiveKind, communicator: usize) -> Self {
        Self {
            kind,
            communicator,
            root: None,
            count: None,
        }
    }

    pub(crate) const fn root(self, root: usize) -> Self {
        Self {
            root: Some(root),
            ..self
        }
    }

    pub(crate) const fn count(self, count: usize) -> Self {
        Self {
            count: Some(count),
            ..self
        }
    }

    /// Returns the operation of a call.
    unsafe fn operation<B: Binding>(&self, a: &impl Arguments) -> Operation {
        // SAFETY: the caller passes the arguments of the function.
        let communicator = unsafe { B::communicator(a.at(self.communicator)) };
        // SAFETY: as above.
        let has_data = self
            .count
            .is_none_or(|at| unsafe { B::count(a.at(at)) } > 0);
        // SAFETY: as above.
        let root = self.root.map(|at| unsafe { B::integer(a.at(at)) });
        let is_root = root.is_some_and(|root| {
            let mut rank = 0_i32;
            // SAFETY: the program passes a communicator.
            unsafe { pmpi::comm_rank(communicator, out(&mut rank)) };
            rank == root
        });
        let (sent, received) = match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Scatter => (is_root, has_data && !is_root),
            CollectiveKind::Gather | CollectiveKind::Reduce => (has_data || is_root, is_root),
            _ => (has_data, has_data),
        };
        Operation {
            communicator: communicators::number(communicator),
            kind: self.kind,
            root: root.unwrap_or(0) as u32,
            sent,
            received,
        }
    }
}

/// Calls a blocking operation.
pub(crate) unsafe fn collective<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    shape: &Shape,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let mut operation = unsafe { shape.operation::<B>(&a) };
    let span = Span::enter(thread, call, Some(operation.communicator));
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    if failed {
        (operation.sent, operation.received) = (false, false);
    }
    span.put(&Record::Collective(operation));
    span.leave(failed, ticks);
    // SAFETY: as above.
    let communicator = unsafe { B::communicator(a.at(shape.communicator)) };
    synchronize::count(thread, communicator);
    result
}

/// Starts an operation; `request` is a position.
pub(crate) unsafe fn collective_start<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    shape: &Shape,
    request: usize,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let operation = unsafe { shape.operation::<B>(&a) };
    let id = thread.next_request();
    let span = Span::enter(thread, call, None);
    span.put(&Record::Start {
        communicator: operation.communicator,
        request: id,
    });
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    if !failed {
        // SAFETY: the call has made the request.
        let handle = unsafe { B::request(a.at(request), 0) };
        if handle != request_null() {
            requests::add(handle, Request::active(Pending::Collective(operation), id));
        }
    }
    span.leave(failed, ticks);
    result
}

/// Makes a persistent operation; `request` is a position.
pub(crate) unsafe fn collective_init<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    shape: &Shape,
    request: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let what = || Pending::Collective(unsafe { shape.operation::<B>(&a) });
    // SAFETY: as above.
    unsafe { persistent::<B, A>(call, a, request, what) }
}
