//! Calls of MPI functions.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::{c_int, c_void};

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request};

use super::persistent::PersistentCall;

/// Arguments of all operations; each operation uses some of them.
#[derive(Debug)]
pub(super) struct CallArguments {
    pub(super) comm: MPI_Comm,
    pub(super) rank: c_int,
    pub(super) ranks: c_int,
    pub(super) root: c_int,
    /// Send buffer of this rank, or `MPI_IN_PLACE`.
    pub(super) send: *const c_void,
    /// Receive buffer of this rank, or `MPI_IN_PLACE`.
    pub(super) recv: *mut c_void,
    /// Buffer of an operation that has only one.
    pub(super) buffer: *mut c_void,
    /// Number of elements of a block.
    pub(super) count: c_int,
    /// Number of elements of every rank's block, and the index of its first element.
    pub(super) counts: *const c_int,
    pub(super) starts: *const c_int,
    /// Offset of the first byte of every rank's block, and its datatype.
    pub(super) offsets: *const c_int,
    pub(super) byte_offsets: *const MPI_Aint,
    pub(super) datatypes: *const MPI_Datatype,
    pub(super) datatype: MPI_Datatype,
    pub(super) reduction: MPI_Op,
    /// Number of messages of a direction that are in flight at once, and a request for each of both directions.
    pub(super) in_flight: c_int,
    pub(super) requests: *mut MPI_Request,
}

/// Calls MPI.
///
/// # Safety
/// MPI is running, this thread may call it, and the arguments are those of an operation: its communicator, counts and
/// types, and buffers as large as its `OperationEntry` requires, which nothing else uses during the call.
pub(super) type MpiCall = unsafe fn(&CallArguments) -> Result<(), MpiError>;

/// Forms of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallForms {
    pub(super) blocking: MpiCall,
    /// Non-blocking form followed by a wait.
    pub(super) immediate: Option<MpiCall>,
    pub(super) persistent: Option<PersistentCall>,
}

impl CallForms {
    /// Returns the forms of an operation that is no collective one.
    pub(super) const fn only_blocking(call: MpiCall) -> Self {
        Self {
            blocking: call,
            immediate: None,
            persistent: None,
        }
    }
}

/// Creates the calls of a blocking, a non-blocking and a persistent function with these arguments; the non-blocking one also takes a
/// request, and the persistent one hints and a request.
macro_rules! collective {
    ($blocking:ident, $immediate:ident, $extension:ident: $($argument:ident)*) => {{
        unsafe fn blocking(with: &$crate::mpi::calls::CallArguments) -> Result<(), downbeat_sync::MpiError> {
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
            let code = unsafe { mpi::ffi::$blocking($(with.$argument),*) };
            downbeat_sync::MpiError::check(stringify!($blocking), code)
        }
        unsafe fn immediate(with: &$crate::mpi::calls::CallArguments) -> Result<(), downbeat_sync::MpiError> {
            let mut request = $crate::mpi::calls::no_request();
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid; the request is writable.
            let code = unsafe { mpi::ffi::$immediate($(with.$argument,)* &raw mut request) };
            downbeat_sync::MpiError::check(stringify!($immediate), code)?;
            $crate::mpi::calls::wait(request)
        }
        unsafe fn make(
            with: &$crate::mpi::calls::CallArguments,
            function: *mut core::ffi::c_void,
        ) -> Result<(), downbeat_sync::MpiError> {
            // SAFETY: the caller guarantees that this is the function, whose arguments are those of the blocking one and these two.
            let function = unsafe {
                core::mem::transmute::<
                    *mut core::ffi::c_void,
                    unsafe extern "C" fn(
                        $($crate::mpi::calls::any!($argument),)*
                        mpi::ffi::MPI_Info,
                        *mut mpi::ffi::MPI_Request,
                    ) -> core::ffi::c_int,
                >(function)
            };
            // SAFETY: a constant.
            let no_info = unsafe { mpi::ffi::RSMPI_INFO_NULL };
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid, as long as the request exists.
            let code = unsafe { function($(with.$argument,)* no_info, with.requests) };
            downbeat_sync::MpiError::check(concat!(stringify!($blocking), "_init"), code)
        }
        let functions = [
            concat!(stringify!($blocking), "_init"),
            concat!(stringify!($extension), "_init"),
        ];
        let persistent = Some($crate::mpi::persistent::PersistentCall { functions, make });
        $crate::mpi::calls::CallForms { blocking, immediate: Some(immediate), persistent }
    }};
}
pub(super) use collective;

/// Type that the compiler infers from an argument.
macro_rules! any {
    ($argument:ident) => {
        _
    };
}
pub(super) use any;

pub(super) fn no_request() -> MPI_Request {
    // SAFETY: a constant.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}

/// Waits for a request.
#[inline(always)]
pub(super) fn wait(mut request: MPI_Request) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
    // SAFETY: MPI has just created the request, so it is running; the status is ignored.
    let code = unsafe { ffi::MPI_Wait(&raw mut request, no_status) };
    MpiError::check("MPI_Wait", code)
}

/// Tag of all messages, which are distinguished only by their order.
pub(super) const TAG: c_int = 0;

/// No call.
pub(super) const EMPTY: CallForms = {
    unsafe fn empty(_: &CallArguments) -> Result<(), MpiError> {
        Ok(())
    }
    CallForms::only_blocking(empty)
};

/// Each rank combines its two buffers into the second.
pub(super) const REDUCE_LOCAL: CallForms = {
    unsafe fn reduce_local(with: &CallArguments) -> Result<(), MpiError> {
        let (count, datatype, reduction) = (with.count, with.datatype, with.reduction);
        // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
        let code =
            unsafe { ffi::MPI_Reduce_local(with.send, with.recv, count, datatype, reduction) };
        MpiError::check("MPI_Reduce_local", code)
    }
    CallForms::only_blocking(reduce_local)
};

/// Rank 0 sends to rank 1, which answers.
pub(super) const PING_PONG: CallForms = {
    unsafe fn ping_pong(with: &CallArguments) -> Result<(), MpiError> {
        match with.rank {
            0 => {
                // SAFETY: guaranteed by the caller.
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
    CallForms::only_blocking(ping_pong)
};

/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
pub(super) unsafe fn send(with: &CallArguments, to: c_int) -> Result<(), MpiError> {
    // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
    let code = unsafe { ffi::MPI_Send(with.send, with.count, with.datatype, to, TAG, with.comm) };
    MpiError::check("MPI_Send", code)
}

/// # Safety
/// As for [`MpiCall`].
#[inline(always)]
pub(super) unsafe fn receive(with: &CallArguments, from: c_int) -> Result<(), MpiError> {
    // SAFETY: a constant.
    let no_status = unsafe { ffi::RSMPI_STATUS_IGNORE };
    // SAFETY: the caller guarantees that MPI runs and that the arguments are valid; the status is ignored.
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

/// Every rank sends to the next rank and receives from the previous one.
pub(super) const SENDRECV: CallForms = {
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
        // SAFETY: the caller guarantees that MPI runs and that the arguments are valid; the status is ignored.
        let code = unsafe {
            ffi::MPI_Sendrecv(
                send, count, datatype, next, TAG, recv, count, datatype, previous, TAG, comm,
                no_status,
            )
        };
        MpiError::check("MPI_Sendrecv", code)
    }
    CallForms::only_blocking(sendrecv)
};
