//! A receive that lets other ranks run while it waits. MPICH's own keeps the core until the scheduler takes it away,
//! which costs milliseconds for each message among ranks that share cores.
//!
//! The linker takes a function of MPI's name for MPI's, and this one calls MPI's own by their second names. So do
//! profilers.

use std::ffi::{c_int, c_void};
use std::thread;

use mpi::ffi::{self, MPI_Comm, MPI_Datatype, MPI_Status};

#[unsafe(no_mangle)]
extern "C" fn MPI_Recv(
    buffer: *mut c_void,
    count: c_int,
    datatype: MPI_Datatype,
    from: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> c_int {
    let mut there = 0;
    loop {
        // SAFETY: the caller keeps to what MPI demands.
        let code = unsafe { ffi::PMPI_Iprobe(from, tag, comm, &mut there, status) };
        if code != ffi::MPI_SUCCESS as c_int {
            return code;
        }
        if there != 0 {
            break;
        }
        thread::yield_now();
    }
    // SAFETY: as above.
    unsafe { ffi::PMPI_Recv(buffer, count, datatype, from, tag, comm, status) }
}
