//! One-sided accesses, and calls that complete them.

use downbeat_recording::{Access, Record};
use downbeat_trace::AccessKind;

use super::{Span, TracedCall};
use crate::arguments::Arguments;
use crate::binding::HandleKind::{Datatype, Window};
use crate::binding::{Binding, bytes};
use crate::communicators;
use crate::constants::PROC_NULL;
use crate::requests::{self, Pending, Request};

/// Kind of an access, and positions of parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    kind: AccessKind,
    target: usize,
    /// Number of elements at the target; one if there is none.
    count: Option<usize>,
    datatype: usize,
    window: usize,
    request: Option<usize>,
}

impl Reach {
    /// Data are put or got: displacement, count and datatype at the target follow it, and then the window.
    pub(crate) const fn transfer(kind: AccessKind, target: usize) -> Self {
        Self {
            kind,
            target,
            count: Some(target + 2),
            datatype: target + 3,
            window: target + 4,
            request: None,
        }
    }

    /// Data are combined: the operation is before the window. Those at the origin are ignored by `MPI_NO_OP`.
    pub(crate) const fn reduction(target: usize) -> Self {
        Self {
            window: target + 5,
            ..Self::transfer(AccessKind::Atomic, target)
        }
    }

    /// One element is combined or exchanged; its datatype is before the target.
    pub(crate) const fn element(target: usize) -> Self {
        Self {
            kind: AccessKind::Atomic,
            target,
            count: None,
            datatype: target - 1,
            window: 6,
            request: None,
        }
    }

    /// A request follows the window.
    pub(crate) const fn started(self) -> Self {
        Self {
            request: Some(self.window + 1),
            ..self
        }
    }

    /// Returns the access of a call; `None` to nobody.
    #[inline(always)]
    unsafe fn access<B: Binding>(
        &self,
        a: &impl Arguments,
        request: Option<u64>,
    ) -> Option<Access> {
        // SAFETY: the caller passes the arguments of the function.
        let target = unsafe { B::integer(a.at(self.target)) };
        if target == PROC_NULL {
            return None;
        }
        let count = match self.count {
            // SAFETY: as above.
            Some(at) => unsafe { B::count(a.at(at)) },
            None => 1,
        };
        Some(Access {
            kind: self.kind,
            // SAFETY: as above.
            window: communicators::number(unsafe { B::handle(Window, a.at(self.window)) }),
            target,
            // SAFETY: as above.
            bytes: bytes(count, unsafe { B::handle(Datatype, a.at(self.datatype)) }),
            request,
        })
    }
}

/// Accesses memory of another rank.
pub(crate) unsafe fn access<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    reach: &Reach,
) -> usize {
    let id = reach.request.map(|_| call.thread.next_request());
    // SAFETY: the caller passes the arguments of the function.
    let access = unsafe { reach.access::<B>(&a, id) };
    let span = call.enter(None);
    if let Some(access) = access {
        span.put(&Record::access_issued(access));
    }
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    if let Some((at, id)) = reach.request.zip(id)
        // SAFETY: the call has made the request.
        && let Some(handle) = unsafe { done.request::<B>(a.at(at)) }
    {
        let what = access.map_or(Pending::Send(None), |access| {
            Pending::Access(access.window, access.target)
        });
        requests::add(handle, Request::active(what, id));
    }
    span.leave(done)
}

/// Completes accesses to one target or all; `target` and `window` are positions.
pub(crate) unsafe fn complete_accesses<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    target: Option<usize>,
    window: usize,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let window = communicators::number(unsafe { B::handle(Window, a.at(window)) });
    // SAFETY: as above.
    let target = target.map(|at| unsafe { B::integer(a.at(at)) });
    let span = call.enter(None);
    // SAFETY: as above.
    let done = unsafe { span.forward::<B>(a) };
    if !done.failed() {
        completed(span, window, target);
    }
    span.leave(done)
}

/// Records that the accesses in a window to one target or all are complete.
pub(super) fn completed(span: Span, window: u32, target: Option<i32>) {
    span.put(&Record::accesses_completed(window, target, None));
}
