//! Collective operations.

use downbeat_recording::{Operation, Record};
use downbeat_trace::CollectiveKind;

use super::message::persistent;
use super::{Data, TracedCall};
use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::binding::HandleKind::Communicator;
use crate::communicators;
use crate::constants::{Handle, PROC_NULL, ROOT};
use crate::pmpi;
use crate::requests::{self, Pending, Request};
use crate::synchronize;

/// Kind of an operation, and positions of its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: CollectiveKind,
    pub(crate) communicator: usize,
    /// Number of elements of a member that is not the root.
    pub(crate) count: Option<usize>,
    pub(crate) given: Option<Given>,
    /// The same if the buffer is the one that receives.
    pub(crate) in_place: Option<Given>,
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
    /// Describes an operation without data.
    pub(crate) const fn new(kind: CollectiveKind, communicator: usize) -> Self {
        Self {
            kind,
            communicator,
            count: None,
            given: None,
            in_place: None,
        }
    }

    /// Position of the root, which is before the communicator.
    const fn root(&self) -> Option<usize> {
        match self.kind {
            CollectiveKind::Broadcast
            | CollectiveKind::Gather
            | CollectiveKind::Reduce
            | CollectiveKind::Scatter => Some(self.communicator - 1),
            _ => None,
        }
    }

    /// Returns the operation of a call.
    unsafe fn operation<B: Binding>(&self, a: &impl Arguments) -> Operation {
        // SAFETY: the caller passes the arguments of the function.
        let communicator = unsafe { B::handle(Communicator, a.at(self.communicator)) };
        // SAFETY: as above.
        let has_data = self
            .count
            .is_none_or(|at| unsafe { B::count(a.at(at)) } > 0);
        // SAFETY: as above.
        let root = self.root().map(|at| unsafe { B::integer(a.at(at)) });
        let (number, has_remote_group) = communicators::look_up(communicator);
        let is_root = match root {
            Some(root) if has_remote_group => root == ROOT,
            Some(root) => {
                // SAFETY: the program passes a communicator.
                root == unsafe { pmpi::comm_rank(communicator) }
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
        match given {
            None => 0,
            // SAFETY: as above.
            Some(Given::One(data)) => unsafe { data.length::<B>(a, 0) },
            Some(Given::Own(data)) => {
                // SAFETY: the program passes a communicator.
                let rank = unsafe { pmpi::comm_rank(communicator) };
                // SAFETY: as above.
                unsafe { data.length::<B>(a, rank as usize) }
            }
            Some(Given::All(data)) => {
                let ranks = if has_remote_group {
                    // SAFETY: as above.
                    unsafe { pmpi::comm_remote_size(communicator) }
                } else {
                    // SAFETY: as above.
                    unsafe { pmpi::comm_size(communicator) }
                };
                // SAFETY: as above.
                unsafe { data.total::<B>(a, ranks as usize) }
            }
        }
    }
}

/// Calls a blocking operation.
pub(crate) unsafe fn collective<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    shape: &Shape,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let mut operation = unsafe { shape.operation::<B>(&a) };
    let span = call.enter(Some(operation.communicator));
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    let took_part = done.took_part();
    if done.failed() {
        (operation.sent, operation.received, operation.bytes) = (false, false, Some(0));
    }
    if took_part {
        span.put(&Record::operation_ended(operation, None));
    }
    span.leave(done);
    if took_part {
        // SAFETY: as above.
        let communicator = unsafe { B::handle(Communicator, a.at(shape.communicator)) };
        synchronize::count(call.thread, communicator);
    }
    done.result
}

/// Starts an operation; its request follows the communicator.
pub(crate) unsafe fn collective_start<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    shape: &Shape,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let operation = unsafe { shape.operation::<B>(&a) };
    let id = call.thread.next_request();
    let span = call.enter(None);
    span.put(&Record::operation_started(operation.communicator, id));
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    // SAFETY: the call has made the request.
    if let Some(handle) = unsafe { done.request::<B>(a.at(shape.communicator + 1)) } {
        requests::add(handle, Request::active(Pending::Collective(operation), id));
    }
    span.leave(done)
}

/// Makes a persistent operation; an info object and its request follow the communicator.
pub(crate) unsafe fn collective_init<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    shape: &Shape,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let what = || Pending::Collective(unsafe { shape.operation::<B>(&a) });
    // SAFETY: as above.
    unsafe { persistent::<B>(call, a, shape.communicator + 2, what) }
}
