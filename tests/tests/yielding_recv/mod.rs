//! A receive that yields while it waits. MPICH's own keeps the core until the scheduler preempts it,
//! which costs milliseconds per message between ranks that share cores.
//!
//! The linker prefers this function to MPI's, which it calls through the profiling interface (`PMPI_`).

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
        // SAFETY: the caller keeps MPI's contract.
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
