//! Ping-pong by requests that are made once: persistent ones, and those of partitioned messages.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use std::sync::OnceLock;

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_Comm, MPI_Count, MPI_Datatype, MPI_Info, MPI_Request};

use super::calls::{CallArguments, MpiCall, TAG};
use super::persistent::{PersistentCall, find, start, wait};

/// Makes both requests of the ranks 0 and 1: the first sends, the second receives.
pub(super) const PERSISTENT: PersistentCall = {
    unsafe fn make(with: &CallArguments, _: *mut c_void) -> Result<(), MpiError> {
        let Some(other) = other(with) else {
            return Ok(());
        };
        let (count, datatype, comm) = (with.count, with.datatype, with.comm);
        // SAFETY: the caller guarantees that MPI runs and that the arguments are valid as long as the requests exist, of which there are two.
        let code = unsafe {
            ffi::MPI_Send_init(with.send, count, datatype, other, TAG, comm, with.requests)
        };
        MpiError::check("MPI_Send_init", code)?;
        let second = with.requests.wrapping_add(1);
        // SAFETY: as above.
        let code =
            unsafe { ffi::MPI_Recv_init(with.recv, count, datatype, other, TAG, comm, second) };
        MpiError::check("MPI_Recv_init", code)
    }
    PersistentCall {
        functions: ["MPI_Send_init", "MPI_Send_init"],
        requests: 2,
        make,
    }
};

/// Sends by one request and receives by the other.
pub(super) const PERSISTENT_PING_PONG: MpiCall = {
    unsafe fn ping_pong(with: &CallArguments) -> Result<(), MpiError> {
        let (send, receive) = (with.requests, with.requests.wrapping_add(1));
        let order = match with.rank {
            0 => [send, receive],
            1 => [receive, send],
            _ => return Ok(()),
        };
        for request in order {
            // SAFETY: the caller guarantees that MPI runs, and that the requests were made and are not active.
            unsafe { start(request) }?;
            // SAFETY: as above; it is active.
            unsafe { wait(request) }?;
        }
        Ok(())
    }
    ping_pong
};

/// Arguments of `MPI_Psend_init` and `MPI_Precv_init`, which headers before MPI 4 do not declare.
type MakePartitioned = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    MPI_Count,
    MPI_Datatype,
    c_int,
    c_int,
    MPI_Comm,
    MPI_Info,
    *mut MPI_Request,
) -> c_int;

/// Makes both requests of the ranks 0 and 1 for messages in parts.
pub(super) const PARTITIONED: PersistentCall = {
    unsafe fn make(with: &CallArguments, psend_init: *mut c_void) -> Result<(), MpiError> {
        let (Some(other), Some(precv_init)) = (other(with), find("MPI_Precv_init")) else {
            return Ok(());
        };
        let second = with.requests.wrapping_add(1);
        let requests = [
            (
                "MPI_Psend_init",
                psend_init,
                with.send.cast_mut(),
                with.requests,
            ),
            ("MPI_Precv_init", precv_init, with.recv, second),
        ];
        for (name, function, buffer, request) in requests {
            // SAFETY: both functions have these arguments.
            let function = unsafe { transmute::<*mut c_void, MakePartitioned>(function) };
            let count = MPI_Count::from(with.count / with.partitions);
            // SAFETY: a constant.
            let no_info = unsafe { ffi::RSMPI_INFO_NULL };
            // SAFETY: the caller guarantees that MPI runs and that the arguments are valid as long as the requests exist.
            let code = unsafe {
                function(
                    buffer,
                    with.partitions,
                    count,
                    with.datatype,
                    other,
                    TAG,
                    with.comm,
                    no_info,
                    request,
                )
            };
            MpiError::check(name, code)?;
        }
        Ok(())
    }
    PersistentCall {
        functions: ["MPI_Psend_init", "MPI_Psend_init"],
        requests: 2,
        make,
    }
};

/// Starts both requests, and declares one part of the message after the other ready.
pub(super) const PARTITIONED_PING_PONG: MpiCall = {
    unsafe fn ping_pong(with: &CallArguments) -> Result<(), MpiError> {
        let (send, receive) = (with.requests, with.requests.wrapping_add(1));
        if with.rank > 1 {
            return Ok(());
        }
        // SAFETY: the caller guarantees that MPI runs, and that the requests were made and are not active.
        unsafe { start(receive) }?;
        // SAFETY: as above.
        unsafe { start(send) }?;
        if with.rank == 1 {
            // SAFETY: as above; it is active.
            unsafe { wait(receive) }?;
        }
        // SAFETY: as above.
        unsafe { all_ready(with.partitions, send) }?;
        // SAFETY: as above.
        unsafe { wait(send) }?;
        if with.rank == 0 {
            // SAFETY: as above.
            unsafe { wait(receive) }?;
        }
        Ok(())
    }
    ping_pong
};

/// Returns the other of the ranks 0 and 1.
fn other(with: &CallArguments) -> Option<c_int> {
    (with.rank < 2).then_some(1 - with.rank)
}

/// # Safety
/// MPI is running, and the request is that of a message of this number of parts, and active.
#[inline(always)]
unsafe fn all_ready(partitions: c_int, request: *mut MPI_Request) -> Result<(), MpiError> {
    type Pready = unsafe extern "C" fn(c_int, MPI_Request) -> c_int;
    static PREADY: OnceLock<Option<Pready>> = OnceLock::new();
    let pready = PREADY.get_or_init(|| {
        // SAFETY: the function has these arguments.
        find("MPI_Pready").map(|found| unsafe { transmute::<*mut c_void, Pready>(found) })
    });
    let Some(pready) = pready else {
        return Ok(());
    };
    // SAFETY: guaranteed by the caller.
    let request = unsafe { *request };
    for partition in 0..partitions {
        // SAFETY: guaranteed by the caller.
        let code = unsafe { pready(partition, request) };
        MpiError::check("MPI_Pready", code)?;
    }
    Ok(())
}
