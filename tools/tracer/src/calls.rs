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
pub(crate) use complete::{Completion, complete};
pub(crate) use data::Data;
#[cfg(mpi_4)]
pub(crate) use life::session;
pub(crate) use life::{finalize, initialize, spawn};
#[cfg(mpi_4)]
pub(crate) use make::make_from_group;
pub(crate) use make::{Making, forget, make};
#[cfg(mpi_4)]
pub(crate) use message::{partitioned_receive_init, partitioned_send_init, send_post};
pub(crate) use message::{post, receive, receive_init, send, send_init, send_receive};
pub(crate) use neighbors::{Layout, neighbors, neighbors_init, neighbors_start};
pub(crate) use one_sided::{Reach, access, complete_accesses};
pub(crate) use probe::{matched_post, matched_probe, matched_receive, probe};
pub(crate) use request::{cancel, request_free, start, start_all};
pub(crate) use window::{end_access, end_exposure, fence, free_window, make_window, open_epoch};

pub(crate) use crate::windows::Epoch;

use downbeat_recording::Record;

use crate::arguments::Arguments;
use crate::binding::Binding;
use crate::call::Call;
use crate::constants::{Handle, request_null};
use crate::process;
use crate::thread::Thread;

/// A call that is under way: recorded, or not.
#[derive(Clone, Copy)]
struct Span {
    thread: Option<&'static Thread>,
    number: u16,
    /// Address in the stack frame of the call.
    frame: usize,
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

impl Span {
    /// Enters a call.
    #[inline(always)]
    fn enter(thread: &'static Thread, call: &Call, collective: Option<u32>) -> Self {
        let is_recorded = process::records() && call.is_recorded();
        let span = Self {
            thread: is_recorded.then_some(thread),
            number: call.number(),
            frame: frame(),
        };
        if let Some(thread) = span.thread {
            thread.begin_call(span.number, span.frame);
            thread.enter(span.number, collective);
        }
        span
    }

    /// Adds a record to the call.
    #[inline(always)]
    fn put(self, record: &Record) {
        if let Some(thread) = self.thread {
            thread.put(record);
        }
    }

    /// Reads the counter, as soon as the call has returned.
    #[inline(always)]
    fn end(self) -> u64 {
        self.thread.map_or(0, Thread::ticks)
    }

    /// Leaves the call.
    #[inline(always)]
    fn leave(self, failed: bool, ticks: u64) {
        if let Some(thread) = self.thread {
            thread.leave(self.number, failed, ticks);
            thread.end_call(self.frame);
        }
    }
}

/// Calls the function; one of Fortran may call that of C in the library, which is the same call.
///
/// # Safety
/// The arguments must be those of the function.
#[inline(always)]
unsafe fn forward<B: Binding, A: Arguments>(
    thread: &'static Thread,
    call: &'static Call,
    a: A,
) -> usize {
    if !B::IS_FORTRAN {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    }
    let before = thread.set_fortran(call.number());
    // SAFETY: as above.
    let result = unsafe { call.forward(a) };
    thread.set_fortran(before);
    result
}

/// Returns the request that a call has made; `None` if there is nothing to complete.
///
/// # Safety
/// The argument must be that of a request.
unsafe fn made_request<B: Binding>(argument: usize) -> Option<Handle> {
    // SAFETY: the caller guarantees it.
    let handle = unsafe { B::request(argument, 0) };
    (handle != request_null()).then_some(handle)
}

/// Calls a function that has no other meaning.
///
/// # Safety
/// The arguments must be those of the function. The same holds for all handlers.
pub(crate) unsafe fn region<B: Binding, A: Arguments>(call: &'static Call, a: A) -> usize {
    let Some(thread) = Thread::of(call) else {
        // SAFETY: the caller passes the arguments of the function.
        return unsafe { call.forward(a) };
    };
    let span = Span::enter(thread, call, None);
    // SAFETY: as above.
    let result = unsafe { forward::<B, A>(thread, call, a) };
    let ticks = span.end();
    // The error code of Fortran need not be the last argument here.
    span.leave(!B::IS_FORTRAN && result as i32 != 0, ticks);
    result
}
