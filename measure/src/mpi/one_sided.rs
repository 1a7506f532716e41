//! One-sided operations between pairs of ranks: the first half of the ranks accesses memory of the other half.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::c_int;

use downbeat_sync::MpiError;
use mpi::ffi;

use super::calls::{CallArguments, MpiCall};
use super::epoch::Epoch;
use super::transfers::PairPart;

/// Creates the calls of a function with these arguments: one access, and many in flight.
macro_rules! access {
    ($function:ident: $($argument:ident)*) => {{
        unsafe fn access(with: &CallArguments) -> Result<(), MpiError> {
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
            let code = unsafe { ffi::$function($(with.$argument),*) };
            MpiError::check(stringify!($function), code)
        }
        unsafe fn one(with: &CallArguments) -> Result<(), MpiError> {
            // SAFETY: guaranteed by the caller.
            unsafe { in_epoch(with, 1, access) }
        }
        unsafe fn many(with: &CallArguments) -> Result<(), MpiError> {
            // SAFETY: guaranteed by the caller.
            unsafe { in_epoch(with, with.in_flight, access) }
        }
        [one as MpiCall, many as MpiCall]
    }};
}

pub(super) const PUT: [MpiCall; 2] =
    access!(MPI_Put: send count datatype target place count datatype window);
pub(super) const GET: [MpiCall; 2] =
    access!(MPI_Get: recv count datatype target place count datatype window);
pub(super) const ACCUMULATE: [MpiCall; 2] =
    access!(MPI_Accumulate: send count datatype target place count datatype reduction window);
pub(super) const GET_ACCUMULATE: [MpiCall; 2] = access!(MPI_Get_accumulate: send count datatype recv count datatype target place count datatype reduction window);
pub(super) const FETCH_AND_OP: [MpiCall; 2] =
    access!(MPI_Fetch_and_op: send recv datatype target place reduction window);
pub(super) const COMPARE_AND_SWAP: [MpiCall; 2] =
    access!(MPI_Compare_and_swap: send second recv datatype target place window);

/// Accesses memory of the other rank of this pair, which is complete there when both have returned and met.
///
/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn in_epoch(with: &CallArguments, accesses: c_int, access: MpiCall) -> Result<(), MpiError> {
    let part = PairPart::of(with.rank, with.ranks);
    // SAFETY: guaranteed by the caller.
    unsafe { begin(with, part) }?;
    if let PairPart::Sender(_) = part {
        for _ in 0..accesses {
            // SAFETY: as above; the epoch has begun.
            unsafe { access(with) }?;
        }
    }
    // SAFETY: as above.
    unsafe { end(with, part) }
}

/// Calls a function that synchronizes.
macro_rules! synchronize {
    ($function:ident($($argument:expr),*)) => {{
        // SAFETY: the caller guarantees that MPI runs, and that the window and the group are valid.
        let code = unsafe { ffi::$function($($argument),*) };
        MpiError::check(stringify!($function), code)
    }};
}

/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn begin(with: &CallArguments, part: PairPart) -> Result<(), MpiError> {
    let (window, partner, shared) = (with.window, with.partner, ffi::MPI_LOCK_SHARED as c_int);
    match (with.epoch, part) {
        (Epoch::Fence, _) => synchronize!(MPI_Win_fence(0, window)),
        (Epoch::Pscw, PairPart::Sender(_)) => synchronize!(MPI_Win_start(partner, 0, window)),
        (Epoch::Pscw, PairPart::Receiver(_)) => synchronize!(MPI_Win_post(partner, 0, window)),
        (Epoch::Lock, PairPart::Sender(to)) => synchronize!(MPI_Win_lock(shared, to, 0, window)),
        _ => Ok(()),
    }
}

/// # Safety
/// As for [`MpiCall`]; the epoch has begun.
#[inline(always)]
unsafe fn end(with: &CallArguments, part: PairPart) -> Result<(), MpiError> {
    let window = with.window;
    match (with.epoch, part) {
        (Epoch::Fence, _) => synchronize!(MPI_Win_fence(0, window)),
        (Epoch::Pscw, PairPart::Sender(_)) => synchronize!(MPI_Win_complete(window)),
        (Epoch::Pscw, PairPart::Receiver(_)) => synchronize!(MPI_Win_wait(window)),
        (Epoch::Lock, PairPart::Sender(to)) => synchronize!(MPI_Win_unlock(to, window)),
        (Epoch::Flush, PairPart::Sender(to)) => synchronize!(MPI_Win_flush(to, window)),
        _ => Ok(()),
    }
}
