//! Probes, and calls that may find nothing; receives of messages that a probe has matched.

use super::message::{posted, received, wanted};
use super::{Outcome, Span, TracedCall};
use crate::arguments::Arguments;
use crate::binding::HandleKind::Message;
use crate::binding::{Binding, integer_at};

/// Calls a function that may find nothing, which is folded with others before; `flag` is the position of its answer.
unsafe fn folded<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    flag: usize,
) -> (Outcome, Option<Span>) {
    let TracedCall { thread, function } = call;
    let span = Span {
        call,
        is_recorded: call.is_recorded(),
        // It is over already.
        frame: 0,
    };
    let first = thread.ticks();
    // SAFETY: the caller passes the arguments of the function.
    let result = unsafe { call.forward::<B>(a) };
    let last = thread.ticks();
    // SAFETY: as above.
    let code = unsafe { B::code(result, a.last()) };
    // SAFETY: the call has set its answer.
    let found = code != 0 || unsafe { integer_at(a.at(flag), 0) } != 0;
    if span.is_recorded {
        if found {
            thread.enter_at(function.number(), first);
        } else if !thread.process().skips_tests() {
            thread.fold(function.number(), first, last);
        }
    }
    let done = Outcome {
        result,
        code,
        ticks: if found { span.ticks() } else { last },
    };
    (done, found.then_some(span))
}

/// Calls a function that waits, or one that may find nothing, which has the position of its answer.
#[inline(always)]
pub(super) unsafe fn awaited<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    flag: Option<usize>,
) -> (Outcome, Option<Span>) {
    if let Some(flag) = flag {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { folded::<B>(call, a, flag) };
    }
    let span = call.enter(None);
    // SAFETY: as above.
    (unsafe { span.forward::<B>(a) }, Some(span))
}

/// Probes without waiting; `flag` is a position.
pub(crate) unsafe fn probe<B: Binding>(call: TracedCall, a: impl Arguments, flag: usize) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let (done, span) = unsafe { folded::<B>(call, a, flag) };
    if let Some(span) = span {
        span.leave(done);
    }
    done.result
}

/// Probes for a message that is matched; `message` and `flag` are positions. A later receive of it needs the communicator.
pub(crate) unsafe fn matched_probe<B: Binding>(
    call: TracedCall,
    a: impl Arguments,
    message: usize,
    flag: Option<usize>,
) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let (done, span) = unsafe { awaited::<B>(call, a, flag) };
    let Some(span) = span else {
        return done.result;
    };
    if !done.failed() {
        // SAFETY: the call has set the message.
        let handle = unsafe { B::handle_at(Message, a.at(message), 0) };
        // SAFETY: as above.
        matched::add(handle, unsafe { wanted::<B>(&a, [0, 1, 2]) });
    }
    span.leave(done)
}

/// Receives a message that was matched.
pub(crate) unsafe fn matched_receive<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let wanted = matched::take(unsafe { B::handle_at(Message, a.at(3), 0) });
    // SAFETY: as above.
    unsafe { received::<B>(call, a, (None, wanted), 4) }
}

/// Receives a message that was matched, without waiting.
pub(crate) unsafe fn matched_post<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    // SAFETY: the caller passes the arguments of the function.
    let wanted = matched::take(unsafe { B::handle_at(Message, a.at(3), 0) });
    // SAFETY: as above.
    unsafe { posted::<B>(call, a, (None, wanted), 4) }
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
