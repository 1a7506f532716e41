//! Probes, and calls that may find nothing; receives of messages that a probe has matched.

use super::message::{posted, received, wanted};
use super::{Span, forward};
use crate::arguments::Arguments;
use crate::binding::{Binding, integer_at};
use crate::call::Call;
use crate::process;
use crate::thread::Thread;

/// Calls a function that may find nothing, which is folded with others before; `flag` is the position of its answer.
unsafe fn folded<B: Binding, A: Arguments>(
    thread: &'static Thread,
    call: &'static Call,
    a: A,
    flag: usize,
) -> (usize, Option<Span>) {
    let is_recorded = process::records() && call.is_recorded();
    let first = thread.ticks();
    // SAFETY: the caller passes the arguments of the function.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let last = thread.ticks();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    // SAFETY: the call has set its answer.
    if !failed && unsafe { integer_at(a.at(flag), 0) } == 0 {
        if is_recorded && !thread.process().skips_tests() {
            thread.fold(call.number(), first, last);
        }
        return (result, None);
    }
    let span = Span {
        thread: is_recorded.then_some(thread),
        number: call.number(),
        // It is over already.
        frame: 0,
    };
    if is_recorded {
        thread.enter_at(call.number(), first);
    }
    (result, Some(span))
}

/// Calls a function that waits, or one that may find nothing, which has the position of its answer.
#[inline(always)]
pub(super) unsafe fn awaited<B: Binding, A: Arguments>(
    thread: &'static Thread,
    call: &'static Call,
    a: A,
    flag: Option<usize>,
) -> (usize, Option<Span>) {
    match flag {
        // SAFETY: the caller passes the arguments of the function.
        Some(flag) => unsafe { folded::<B, A>(thread, call, a, flag) },
        None => {
            let span = Span::enter(thread, call, None);
            // SAFETY: as above.
            (unsafe { forward::<B, A>(thread, call, a) }, Some(span))
        }
    }
}

/// Probes without waiting; `flag` is a position.
pub(crate) unsafe fn probe<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    flag: usize,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let (result, span) = unsafe { folded::<B, A>(thread, call, a, flag) };
    if let Some(span) = span {
        // SAFETY: as above.
        span.leave(unsafe { B::failed(result, a.last()) }, span.end());
    }
    result
}

/// Probes for a message that is matched; `message` and `flag` are positions. A later receive of it needs the communicator.
pub(crate) unsafe fn matched_probe<B: Binding, A: Arguments>(
    call: &'static Call,
    a: A,
    message: usize,
    flag: Option<usize>,
) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let (result, span) = unsafe { awaited::<B, A>(thread, call, a, flag) };
    let Some(span) = span else {
        return result;
    };
    let ticks = span.end();
    // SAFETY: as above.
    let failed = unsafe { B::failed(result, a.last()) };
    if !failed {
        // SAFETY: the call has set the message.
        let handle = unsafe { B::message(a.at(message)) };
        // SAFETY: as above.
        matched::add(handle, unsafe { wanted::<B>(&a, [0, 1, 2]) });
    }
    span.leave(failed, ticks);
    result
}

/// Receives a message that was matched.
pub(crate) unsafe fn matched_receive<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let wanted = matched::take(unsafe { B::message(a.at(3)) });
    // SAFETY: as above.
    unsafe { received::<B, A>(thread, call, a, (None, wanted), 4) }
}

/// Receives a message that was matched, without waiting.
pub(crate) unsafe fn matched_post<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    // SAFETY: as above.
    let wanted = matched::take(unsafe { B::message(a.at(3)) });
    // SAFETY: as above.
    unsafe { posted::<B, A>(thread, call, a, (None, wanted), 4) }
}

/// Messages that were matched and not received yet.
mod matched {
    use std::sync::{LazyLock, Mutex, PoisonError};

    use rustc_hash::FxHashMap;

    use crate::constants::Handle;
    use crate::requests::Wanted;

    static TABLE: LazyLock<Mutex<FxHashMap<Handle, Option<Wanted>>>> =
        LazyLock::new(Mutex::default);

    /// Adds a message, or none from nobody.
    pub(super) fn add(message: Handle, wanted: Option<Wanted>) {
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(message, wanted);
    }

    /// Removes a message, and returns what was asked for; `None` if it is from nobody.
    pub(super) fn take(message: Handle) -> Option<Wanted> {
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.remove(&message).flatten()
    }
}
