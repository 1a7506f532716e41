//! Calls with their records. Each handler serves one kind of functions, in all bindings.

mod collective;
mod complete;
mod data;
mod life;
mod make;
mod message;
mod neighbors;
mod one_sided;
mod probe;
mod request;
mod window;

pub(crate) use collective::{Given, Shape, collective, collective_init, collective_start};
pub(crate) use complete::{Completion, CompletionKind, complete};
pub(crate) use data::Data;
#[cfg(mpi_4)]
pub(crate) use life::session;
pub(crate) use life::{finalize, initialize, spawn};
#[cfg(mpi_4)]
pub(crate) use make::make_from_group;
pub(crate) use make::{forget, make};
#[cfg(mpi_4)]
pub(crate) use message::{partitioned_receive_init, partitioned_send_init, send_post};
pub(crate) use message::{post, receive, receive_init, send, send_init, send_receive};
pub(crate) use neighbors::{Layout, neighbors, neighbors_init, neighbors_start};
pub(crate) use one_sided::{Reach, access, complete_accesses};
pub(crate) use probe::{matched_post, matched_probe, matched_receive, probe};
pub(crate) use request::{cancel, request_free, start, start_all};
pub(crate) use window::{end_access, end_exposure, fence, free_window, make_window, open_epoch};

pub(crate) use crate::communicators::Origin;
pub(crate) use crate::windows::Epoch;

use downbeat_recording::{Envelope, Record};

use crate::arguments::Arguments;
use crate::binding::{Binding, HandleKind};
use crate::call::Call;
use crate::constants::{ERR_UNKNOWN, Handle, request_null};
use crate::pmpi;
use crate::process;
use crate::thread::Thread;

/// A call of the program on a thread that is traced.
#[derive(Clone, Copy)]
pub(crate) struct TracedCall {
    thread: &'static Thread,
    function: &'static Call,
}

/// A call that is under way: recorded, or not.
#[derive(Clone, Copy)]
struct Span {
    call: TracedCall,
    is_recorded: bool,
    /// Address in the stack frame of the call.
    frame: usize,
}

/// End of a call.
#[derive(Clone, Copy)]
struct Outcome {
    result: usize,
    /// Error code; 0 if the call succeeded.
    code: i32,
    ticks: u64,
}

/// Returns an address in the present stack frame.
#[inline(always)]
fn frame() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let stack: usize;
        // SAFETY: it reads the stack pointer.
        unsafe {
            core::arch::asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags));
        }
        stack
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let here = 0_u8;
        core::hint::black_box(&raw const here).addr()
    }
}

impl TracedCall {
    /// Returns a call of the function; `None` if it is one of the tracer or of the
    /// library itself.
    #[inline(always)]
    pub(crate) fn of(function: &'static Call) -> Option<Self> {
        Thread::of(function).map(|thread| Self { thread, function })
    }

    /// Returns true if the call is to be recorded.
    #[inline(always)]
    fn is_recorded(self) -> bool {
        process::records() && self.function.is_recorded()
    }

    /// Enters the call.
    #[inline(always)]
    fn enter(self, collective: Option<u32>) -> Span {
        let span = Span {
            call: self,
            is_recorded: self.is_recorded(),
            frame: frame(),
        };
        if span.is_recorded {
            let number = self.function.number();
            self.thread.begin_call(number, span.frame);
            self.thread.enter(number, collective);
        }
        span
    }

    /// Calls the function; one of Fortran may call that of C in the library, which is the
    /// same call.
    ///
    /// # Safety
    /// The arguments must be those of the function.
    #[inline(always)]
    unsafe fn forward<B: Binding>(self, a: impl Arguments) -> usize {
        if !B::IS_FORTRAN {
            // SAFETY: the caller passes the arguments of the function.
            return unsafe { self.function.forward(a) };
        }
        let before = self.thread.set_fortran(self.function.number());
        // SAFETY: as above.
        let result = unsafe { self.function.forward(a) };
        self.thread.set_fortran(before);
        result
    }

    /// Calls the function, and records no more than that.
    ///
    /// # Safety
    /// The arguments must be those of the function.
    #[inline(always)]
    unsafe fn record<B: Binding>(self, a: impl Arguments) -> Outcome {
        let span = self.enter(None);
        // SAFETY: the caller passes the arguments of the function.
        let done = unsafe { span.forward::<B>(a) };
        span.leave(done);
        done
    }
}

impl Span {
    /// Calls the function, whose last argument is its error code in Fortran.
    ///
    /// # Safety
    /// The arguments must be those of the function.
    #[inline(always)]
    unsafe fn forward<B: Binding>(self, a: impl Arguments) -> Outcome {
        // SAFETY: the caller passes the arguments of the function.
        let code = |result| unsafe { B::code(result, a.last()) };
        // SAFETY: as above.
        unsafe { self.forward_with::<B>(a, code) }
    }

    /// Calls the function, whose result tells its error code in this way.
    ///
    /// # Safety
    /// The arguments must be those of the function.
    #[inline(always)]
    unsafe fn forward_with<B: Binding>(
        self,
        a: impl Arguments,
        code: impl FnOnce(usize) -> i32,
    ) -> Outcome {
        // SAFETY: the caller passes the arguments of the function.
        let result = unsafe { self.call.forward::<B>(a) };
        let ticks = self.ticks();
        let code = code(result);
        Outcome {
            result,
            code,
            ticks,
        }
    }

    /// Reads the counter, as soon as the call has returned.
    #[inline(always)]
    fn ticks(self) -> u64 {
        if self.is_recorded {
            self.call.thread.ticks()
        } else {
            0
        }
    }

    /// Adds a record to the call.
    #[inline(always)]
    fn put(self, record: &Record) {
        if self.is_recorded {
            self.call.thread.put(record);
        }
    }

    /// Records that the call sends messages.
    #[inline(always)]
    fn send(self, messages: impl IntoIterator<Item = Envelope>) {
        for message in messages {
            self.put(&Record::message_sent(message));
        }
    }

    /// Leaves the call, and returns its result.
    #[inline(always)]
    fn leave(self, outcome: Outcome) -> usize {
        if self.is_recorded {
            let TracedCall { thread, function } = self.call;
            thread.leave(function.number(), outcome.failed(), outcome.ticks);
            thread.end_call(self.frame);
        }
        outcome.result
    }
}

impl Outcome {
    #[inline(always)]
    fn failed(self) -> bool {
        self.code != 0
    }

    /// Returns true if the call took part in an operation of all members: it did not
    /// fail, or failed for another reason than a wrong argument, which the library finds
    /// before.
    #[inline(always)]
    fn took_part(self) -> bool {
        self.code == 0 || !is_of_argument(self.code)
    }

    /// Returns the request that the call has made; `None` if there is nothing to
    /// complete.
    ///
    /// # Safety
    /// The argument must be that of a request.
    unsafe fn request<B: Binding>(self, argument: usize) -> Option<Handle> {
        if self.failed() {
            return None;
        }
        // SAFETY: the caller guarantees it.
        let handle = unsafe { B::handle_at(HandleKind::Request, argument, 0) };
        (handle != request_null()).then_some(handle)
    }
}

/// Returns true if an error code is one of a wrong argument.
#[cold]
fn is_of_argument(code: i32) -> bool {
    // SAFETY: MPI is initialized.
    let class = unsafe { pmpi::error_class(code as usize) };
    class < ERR_UNKNOWN
}

/// Calls a function that has no other meaning.
///
/// # Safety
/// The arguments must be those of the function. The same holds for all handlers.
pub(crate) unsafe fn region<B: Binding>(call: TracedCall, a: impl Arguments) -> usize {
    let span = call.enter(None);
    // The error code of Fortran need not be the last argument here.
    let code = |result| if B::IS_FORTRAN { 0 } else { result as i32 };
    // SAFETY: the caller passes the arguments of the function.
    let done = unsafe { span.forward_with::<B>(a, code) };
    span.leave(done)
}
