//! Constants of the MPI library that its bindings lack.
//!
//! `MPI_IN_PLACE` is 1 in Open MPI and -1 in MPICH, and both headers write it as a cast, whose value the generated bindings
//! omit: C code returns it, compiled with the header of the linked library.

use core::ffi::c_void;

use mpi::ffi::{MPI_Comm, MPI_Datatype};

#[expect(unsafe_code, reason = "C code")]
// SAFETY: `constants.c` defines these, with these types.
unsafe extern "C" {
    safe fn downbeat_mpi_in_place() -> *mut c_void;
    safe fn downbeat_mpi_byte() -> MPI_Datatype;
    safe fn downbeat_mpi_char() -> MPI_Datatype;
    safe fn downbeat_mpi_signed_char() -> MPI_Datatype;
    safe fn downbeat_mpi_int() -> MPI_Datatype;
    safe fn downbeat_mpi_fortran_handle(comm: MPI_Comm) -> i32;
}

/// Returns `MPI_IN_PLACE`, the argument for a buffer if the other buffer is used for both.
pub(super) fn in_place() -> *mut c_void {
    downbeat_mpi_in_place()
}

/// Returns `MPI_BYTE`.
pub(super) fn byte() -> MPI_Datatype {
    downbeat_mpi_byte()
}

/// Returns `MPI_CHAR`.
pub(super) fn char() -> MPI_Datatype {
    downbeat_mpi_char()
}

/// Returns `MPI_SIGNED_CHAR`.
pub(super) fn signed_char() -> MPI_Datatype {
    downbeat_mpi_signed_char()
}

/// Returns `MPI_INT`.
pub(super) fn int() -> MPI_Datatype {
    downbeat_mpi_int()
}

/// Returns the handle by which Fortran knows a communicator.
pub(super) fn fortran_handle(comm: MPI_Comm) -> i32 {
    downbeat_mpi_fortran_handle(comm)
}
