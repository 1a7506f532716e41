//! Calls of MPI functions.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::{c_int, c_void};

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Aint, MPI_Comm, MPI_Datatype, MPI_Group, MPI_Op, MPI_Request, MPI_Win};

use super::computation::Computation;
use super::epoch::Epoch;

/// Arguments of all operations; each operation uses some of them.
#[derive(Clone, Copy, Debug)]
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
    /// Second element of the send buffer, if the operation sends two.
    pub(super) second: *const c_void,
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
    /// Number of parts of a partitioned message.
    pub(super) partitions: c_int,
    /// Computation during a non-blocking operation.
    pub(super) computation: Computation,
    /// Window of a one-sided operation, the other rank of this pair, its group, and the offset of the message in its memory.
    pub(super) window: MPI_Win,
    pub(super) target: c_int,
    pub(super) partner: MPI_Group,
    pub(super) place: MPI_Aint,
    pub(super) epoch: Epoch,
}

/// Calls MPI.
///
/// # Safety
/// MPI is running, this thread may call it, and the arguments are those of an operation: its communicator, counts and
/// types, and buffers as large as its `OperationEntry` requires, which nothing else uses during the call.
pub(super) type MpiCall = unsafe fn(&CallArguments) -> Result<(), MpiError>;

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
pub(super) const EMPTY: MpiCall = {
    unsafe fn empty(_: &CallArguments) -> Result<(), MpiError> {
        Ok(())
    }
    empty
};

/// Each rank combines its two buffers into the second.
pub(super) const REDUCE_LOCAL: MpiCall = {
    unsafe fn reduce_local(with: &CallArguments) -> Result<(), MpiError> {
        let (count, datatype, reduction) = (with.count, with.datatype, with.reduction);
        // SAFETY: the caller guarantees that MPI runs and that the arguments are valid.
        let code =
            unsafe { ffi::MPI_Reduce_local(with.send, with.recv, count, datatype, reduction) };
        MpiError::check("MPI_Reduce_local", code)
    }
    reduce_local
};

/// Rank 0 sends to rank 1, which answers.
pub(super) const PING_PONG: MpiCall = {
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
    ping_pong
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
pub(super) const SENDRECV: MpiCall = {
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
    sendrecv
};
