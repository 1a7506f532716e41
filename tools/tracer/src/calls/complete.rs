//! Completion of requests: `MPI_Wait`, `MPI_Test` and their kin.

use downbeat_recording::Record;

use super::message::{incoming, keep_status};
use super::probe::awaited;
use super::{Span, TracedCall};
use crate::arguments::Arguments;
use crate::binding::{Binding, HandleKind, integer_at, status_at};
use crate::constants::{ERR_PENDING, Handle, Status, request_null};
use crate::pmpi::{self, out};
use crate::requests::{self, Pending, Watched};
use crate::thread::Thread;

/// Positions of the parameters of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    kind: CompletionKind,
    /// Status or statuses.
    status: usize,
    /// Answer of a test.
    flag: Option<usize>,
}

/// Requests that a function completes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CompletionKind {
    /// The one that it is called with.
    One,
    /// All of a list.
    All,
    /// One of a list, whose index is at this position.
    Any(usize),
    /// Some of a list, whose number is at position 2 and whose indices are at position 3.
    Several,
}

impl Completion {
    pub(crate) const fn new(kind: CompletionKind, status: usize, flag: Option<usize>) -> Self {
        Self { kind, status, flag }
    }

    const fn is_list(&self) -> bool {
        !matches!(self.kind, CompletionKind::One)
    }
}

/// List of requests before a call.
struct List {
    address: usize,
    count: usize,
    /// Requests that matter.
    watched: Vec<Watched>,
    /// Handles, where indices may count from 0 or 1.
    handles: Vec<Handle>,
}

impl List {
    unsafe fn new<B: Binding>(thread: &Thread, how: &Completion, a: &impl Arguments) -> Self {
        let (address, count) = if how.is_list() {
            // SAFETY: the caller passes the arguments of the function.
            (a.at(1), unsafe { B::integer(a.at(0)) }.max(0) as usize)
        } else {
            (a.at(0), 1)
        };
        let mut list = Self {
            address,
            count,
            watched: thread.watched.take(),
            handles: vec![],
        };
        let needs_handles =
            B::IS_FORTRAN && matches!(how.kind, CompletionKind::Any(_) | CompletionKind::Several);
        for index in 0..count {
            // SAFETY: as above.
            let handle = unsafe { B::handle_at(HandleKind::Request, address, index) };
            if needs_handles {
                list.handles.push(handle);
            }
            if handle == request_null() {
                continue;
            }
            if let Some(request) = requests::find(handle)
                && request.is_active
                && !matches!(request.what, Pending::Send(_))
            {
                list.watched.push(Watched {
                    index,
                    handle,
                    request,
                });
            }
        }
        list
    }

    fn keep_memory(mut self, thread: &Thread) {
        self.watched.clear();
        thread.watched.set(self.watched);
    }

    /// Returns the position in the list of an index that a function returned.
    unsafe fn position<B: Binding>(&self, index: i32) -> Option<usize> {
        let found = usize::try_from(index).ok()?;
        if !B::IS_FORTRAN {
            return Some(found);
        }
        let (first, second) = if B::COUNTS_FROM_0 {
            (Some(found), found.checked_sub(1))
        } else {
            (found.checked_sub(1), Some(found))
        };
        // SAFETY: the caller passes the binding of the list.
        let is_done = |at: &usize| unsafe { self.is_done::<B>(*at) };
        first.filter(is_done).or(second.filter(is_done))
    }

    /// Returns true if the request at this position may be complete.
    unsafe fn is_done<B: Binding>(&self, at: usize) -> bool {
        let null = request_null();
        let Some(before) = self.handles.get(at) else {
            return false;
        };
        // SAFETY: the list has this element.
        let is_null = || unsafe { B::handle_at(HandleKind::Request, self.address, at) } == null;
        let is_persistent = || requests::find(*before).is_some_and(|request| request.is_persistent);
        *before != null && (is_null() || is_persistent())
    }
}

/// Calls a function that completes requests.
pub(crate) unsafe fn complete<B: Binding>(
    call: TracedCall,
    mut a: impl Arguments,
    how: &Completion,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let list = unsafe { List::new::<B>(call.thread, how, &a) };
    let (mut one, mut many) = (Status::EMPTY, vec![]);
    let mut status = 0;
    if !list.watched.is_empty() {
        let at = how.status;
        if matches!(how.kind, CompletionKind::All | CompletionKind::Several) {
            // SAFETY: as above.
            if unsafe { B::is_ignored(a.at(at)) } {
                many.resize(list.count * size_of_val(&one.0) / size_of::<i32>(), 0_i32);
                a.set(at, many.as_mut_ptr().expose_provenance());
            }
            status = a.at(at);
        } else {
            // SAFETY: as above.
            status = unsafe { keep_status::<B>(&mut a, at, &mut one) };
        }
    }
    // SAFETY: as above.
    let (done, span) = unsafe { awaited::<B>(call, a, how.flag) };
    if let Some(span) = span {
        if !list.watched.is_empty() {
            // SAFETY: the call has filled the statuses.
            unsafe { finish::<B>(span, &list, how, &a, status, done.failed()) };
        }
        span.leave(done);
    }
    list.keep_memory(call.thread);
    done.result
}

/// Records what a call has completed.
unsafe fn finish<B: Binding>(
    span: Span,
    list: &List,
    how: &Completion,
    a: &impl Arguments,
    status: usize,
    failed: bool,
) {
    let end = |watched: &Watched, at| {
        // SAFETY: the caller passes the statuses of the call.
        let status = unsafe { status_at(status, at) };
        end(span, watched, status, failed, how.is_list());
    };
    match how.kind {
        CompletionKind::One => list.watched.iter().for_each(|watched| end(watched, 0)),
        CompletionKind::All => list
            .watched
            .iter()
            .for_each(|watched| end(watched, watched.index)),
        CompletionKind::Any(at) => {
            // SAFETY: the call has set the index.
            let index = unsafe { integer_at(a.at(at), 0) };
            // SAFETY: as above.
            let index = unsafe { list.position::<B>(index) };
            let found = list
                .watched
                .iter()
                .find(|watched| Some(watched.index) == index);
            found.into_iter().for_each(|watched| end(watched, 0));
        }
        CompletionKind::Several => {
            // SAFETY: the call has set the number. It is negative if no request is active.
            let count = unsafe { integer_at(a.at(2), 0) }.max(0) as usize;
            for at in 0..count.min(list.count) {
                // SAFETY: there is this number of indices.
                let index = unsafe { integer_at(a.at(3), at) };
                // SAFETY: as above.
                let index = unsafe { list.position::<B>(index) };
                let found = list
                    .watched
                    .iter()
                    .find(|watched| Some(watched.index) == index);
                found.into_iter().for_each(|watched| end(watched, at));
            }
        }
    }
}

/// Records the end of one request.
fn end(span: Span, watched: &Watched, mut status: Status, failed: bool, is_list: bool) {
    let Watched {
        handle, request, ..
    } = *watched;
    // A call that completes several tells for each of them if it failed.
    if failed && is_list && status.error() == ERR_PENDING {
        return;
    }
    let failed = failed && (!is_list || status.error() != 0);
    requests::end(handle, request.id);
    let id = request.id;
    match request.what {
        Pending::Receive(Some(wanted)) => {
            // SAFETY: the status is one that a completion filled.
            let mut is_cancelled = || unsafe { pmpi::test_cancelled(out(&mut status)) } != 0;
            // Other threads may have cancelled it since. Not all completions fill a
            // status.
            let is_lost = failed || (wanted.has_status && is_cancelled());
            let message = if is_lost {
                None
            } else {
                incoming(wanted, &mut status)
            };
            span.put(&match message {
                Some(message) => Record::receive_completed(message, id),
                None => Record::receive_cancelled(id),
            });
        }
        Pending::Collective(operation) => {
            span.put(&Record::operation_ended(operation, Some(id)));
        }
        Pending::Exchange(exchange) => exchange.end(span, request, failed),
        Pending::Access(window, target) if !failed => {
            span.put(&Record::accesses_completed(window, Some(target), Some(id)));
        }
        Pending::Access(..) | Pending::Receive(None) | Pending::Send(_) => {}
    }
}
