//! How the functions of MPI are called.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::{c_int, c_void};

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Op};

/// All that any operation is called with.
#[derive(Debug)]
pub(super) struct CallArguments {
    pub(super) comm: MPI_Comm,
    pub(super) rank: c_int,
    pub(super) ranks: c_int,
    pub(super) root: c_int,
    /// What this rank contributes, or `MPI_IN_PLACE`.
    pub(super) send: *const c_void,
    /// Where it gets its result, or `MPI_IN_PLACE`.
    pub(super) recv: *mut c_void,
    /// The message, of an operation that has no other.
    pub(super) buffer: *mut c_void,
    /// Elements of a block.
    pub(super) count: c_int,
    /// Elements of every rank's block, and where it begins.
    pub(super) counts: *const c_int,
    pub(super) starts: *const c_int,
    pub(super) datatype: MPI_Datatype,
    pub(super) reduction: MPI_Op,
}

/// Calls MPI.
///
/// # Safety
/// MPI is running, this thread may call it, and the arguments are an operation's own: its communicator, numbers and
/// types, and buffers as large as its [`OperationEntry`](super::entries::OperationEntry) says; nobody else uses those during the call.
pub(super) type MpiCall = unsafe fn(&CallArguments) -> Result<(), MpiError>;

/// What waits for all, moves or combines messages: a blocking function, and its non-blocking form.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPair {
    pub(super) blocking: MpiCall,
    /// Waits at once.
    pub(super) immediate: Option<MpiCall>,
}

/// The calls of these two functions with these arguments, after which the non-blocking one takes its request.
macro_rules! collective {
    ($blocking:ident, $immediate:ident: $($argument:ident)*) => {{
        unsafe fn blocking(with: &$crate::mpi::calls::CallArguments) -> Result<(), downbeat_sync::MpiError> {
            // SAFETY: the caller vouches for MPI and for the arguments.
            let code = unsafe { mpi::ffi::$blocking($(with.$argument),*) };
            downbeat_sync::MpiError::check(stringify!($blocking), code)
        }
        unsafe fn immediate(with: &$crate::mpi::calls::CallArguments) -> Result<(), downbeat_sync::MpiError> {
            let mut request = $crate::mpi::calls::no_request();
            // SAFETY: the caller vouches for MPI and for the arguments; the request can be written to.
            let code = unsafe { mpi::ffi::$immediate($(with.$argument,)* &raw mut request) };
            downbeat_sync::MpiError::check(stringify!($immediate), code)?;
            $crate::mpi::calls::wait(request)
        }
        $crate::mpi::calls::CallPair { blocking, immediate: Some(immediate) }
    }};
}
pub(super) use collective;

pub(super) fn no_request() -> ffi::MPI_Request {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// Waits for what was just begun.
#[inline(always)]
pub(super) fn wait(mut request: ffi::MPI_Request) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
    // SAFETY: MPI has just made the request, so it runs; no status is wanted.
    let code = unsafe { ffi::MPI_Wait(&raw mut request, no_status) };
    MpiError::check("MPI_Wait", code)
}

/// Order is all that tells messages apart.
const TAG: c_int = 0;

/// Calls nothing.
pub(super) const EMPTY: CallPair = {
    unsafe fn empty(_: &CallArguments) -> Result<(), MpiError> {
        Ok(())
    }
    CallPair {
        blocking: empty,
        immediate: None,
    }
};

/// Rank 0 sends to rank 1, which answers.
pub(super) const PING_PONG: CallPair = {
    unsafe fn ping_pong(with: &CallArguments) -> Result<(), MpiError> {
        match with.rank {
            0 => {
                // SAFETY: the caller vouches for it, also below.
                unsafe { send(with, 1) }?;
                // SAFETY: as above.
                unsafe { receive(with, 1) }
            }
            1 => {
                // SAFETY: as above.
                unsafe { receive(with, 0) }?;
                // SAFETY: as above.
                unsafe { send(with, 0) }
            }
            _ => Ok(()),
        }
    }
    CallPair {
        blocking: ping_pong,
        immediate: None,
    }
};

/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn send(with: &CallArguments, to: c_int) -> Result<(), MpiError> {
    // SAFETY: the caller vouches for MPI and for the arguments.
    let code = unsafe { ffi::MPI_Send(with.send, with.count, with.datatype, to, TAG, with.comm) };
    MpiError::check("MPI_Send", code)
}

/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
unsafe fn receive(with: &CallArguments, from: c_int) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
    // SAFETY: the caller vouches for MPI and for the arguments; no status is wanted.
    let code = unsafe {
        ffi::MPI_Recv(
            with.recv,
            with.count,
            with.datatype,
            from,
            TAG,
            with.comm,
            no_status,
        )
    };
    MpiError::check("MPI_Recv", code)
}

/// Every rank sends to the next and receives from the one before.
pub(super) const SENDRECV: CallPair = {
    unsafe fn sendrecv(with: &CallArguments) -> Result<(), MpiError> {
        let next = if with.rank + 1 == with.ranks {
            0
        } else {
            with.rank + 1
        };
        let previous = if with.rank == 0 {
            with.ranks - 1
        } else {
            with.rank - 1
        };
        let CallArguments {
            send,
            recv,
            count,
            datatype,
            comm,
            ..
        } = *with;
        // SAFETY: a constant.
        let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
        // SAFETY: the caller vouches for MPI and for the arguments; no status is wanted.
        let code = unsafe {
            ffi::MPI_Sendrecv(
                send, count, datatype, next, TAG, recv, count, datatype, previous, TAG, comm,
                no_status,
            )
        };
        MpiError::check("MPI_Sendrecv", code)
    }
    CallPair {
        blocking: sendrecv,
        immediate: None,
    }
};
