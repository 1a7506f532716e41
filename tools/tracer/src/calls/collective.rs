//! Collective operations.

use downbeat_recording::{Operation, Record};
use downbeat_trace::CollectiveKind;

use super::message::persistent;
use super::{Data, Span, forward, made_request};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::communicators;
use crate::constants::{Handle, PROC_NULL, ROOT};
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
    given: Option<Given>,
    /// The same if the buffer is the one that receives.
    in_place: Option<Given>,
}

/// Data that a member gives to the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    /// Its own data, with one count and one datatype.
    One(Data),
    /// Those of its rank among those of all.
    Own(Data),
    /// Those of all ranks.
    All(Data),
}

impl Shape {
    pub(crate) const fn new(kind: CollectiveKind, communicator: usize) -> Self {
        Self {
            kind,
            communicator,
            root: None,
            count: None,
            given: None,
            in_place: None,
        }
    }

    pub(crate) const fn gives(self, given: Given) -> Self {
        Self {
            given: Some(given),
            ..self
        }
    }

    pub(crate) const fn in_place(self, given: Given) -> Self {
        Self {
            in_place: Some(given),
            ..self
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
        let (number, has_remote_group) = communicators::look_up(communicator);
        let is_root = match root {
            Some(root) if has_remote_group => root == ROOT,
            Some(root) => {
                let mut rank = 0_i32;
                // SAFETY: the program passes a communicator.
                unsafe { pmpi::comm_rank(communicator, out(&mut rank)) };
                rank == root
            }
            None => false,
        };
        // The others of its group only take part.
        let is_other = has_remote_group && root == Some(PROC_NULL);
        let (sent, received) = match self.kind {
            _ if is_other => (false, false),
            CollectiveKind::Broadcast | CollectiveKind::Scatter => (is_root, has_data && !is_root),
            CollectiveKind::Gather | CollectiveKind::Reduce => (
                if has_remote_group {
                    has_data && !is_root
                } else {
                    has_data || is_root
                },
                is_root,
            ),
            _ => (has_data, has_data),
        };
        Operation {
            communicator: number,
            kind: self.kind,
            root: root.unwrap_or(0) as u32,
            sent,
            received,
            bytes: Some(if sent {
                // SAFETY: as above.
                unsafe { self.bytes::<B>(a, communicator, has_remote_group) }
            } else {
                0
            }),
        }
    }

    /// Returns the length of what a member gives to the others. Parameters of those that give nothing have no meaning.
    unsafe fn bytes<B: Binding>(
        &self,
        a: &impl Arguments,
        communicator: Handle,
        has_remote_group: bool,
    ) -> u64 {
        let mut given = self.given;
        // SAFETY: the caller passes the arguments of the function, which begin with the buffer.
        if self.in_place.is_some() && unsafe { B::is_in_place(a.at(0)) } {
            given = self.in_place;
        }
        let mut number = 0_i32;
        match given {
            None => 0,
            // SAFETY: as above.
            Some(Given::One(data)) => unsafe { data.length::<B>(a, 0) },
            Some(Given::Own(data)) => {
                // SAFETY: the program passes a communicator.
                unsafe { pmpi::comm_rank(communicator, out(&mut number)) };
                // SAFETY: as above.
                unsafe { data.length::<B>(a, number as usize) }
            }
            Some(Given::All(data)) => {
                if has_remote_group {
                    // SAFETY: as above.
                    unsafe { pmpi::comm_remote_size(communicator, out(&mut number)) };
                } else {
                    // SAFETY: as above.
                    unsafe { pmpi::comm_size(communicator, out(&mut number)) };
                }
                // SAFETY: as above.
                unsafe { data.total::<B>(a, number as usize) }
            }
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
    // SAFETY: as above.
    let took_part = unsafe { B::took_part(result, a.last()) };
    if failed {
        (operation.sent, operation.received, operation.bytes) = (false, false, Some(0));
    }
    if took_part {
        span.put(&Record::operation_ended(operation, None));
    }
    span.leave(failed, ticks);
    if took_part {
        // SAFETY: as above.
        let communicator = unsafe { B::communicator(a.at(shape.communicator)) };
        synchronize::count(thread, communicator);
    }
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
    span.put(&Record::operation_started(operation.communicator, id));
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    // SAFETY: the call has made the request.
    if !failed && let Some(handle) = unsafe { made_request::<B>(a.at(request)) } {
        requests::add(handle, Request::active(Pending::Collective(operation), id));
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
    let what = |_: &_| Pending::Collective(unsafe { shape.operation::<B>(&a) });
    // SAFETY: as above.
    unsafe { persistent::<B, A>(call, a, request, what) }
}
