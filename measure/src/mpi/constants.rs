//! Constants of the MPI library that its bindings do not have.
//!
//! `MPI_IN_PLACE` is 1 in Open MPI and -1 in MPICH, and either header writes it as a cast, of which bindings can tell
//! no value: so C code tells it, compiled with the header of the library that is linked.

use core::ffi::c_void;

use mpi::ffi::MPI_Datatype;

#[expect(unsafe_code, reason = "C code")]
// SAFETY: `constants.c` defines these, with these types.
unsafe extern "C" {
    safe fn downbeat_mpi_in_place() -> *mut c_void;
    safe fn downbeat_mpi_byte() -> MPI_Datatype;
}

/// Stands for a buffer, where the other one is used for both.
pub(super) fn in_place() -> *mut c_void {
    downbeat_mpi_in_place()
}

/// `MPI_BYTE`.
pub(super) fn byte() -> MPI_Datatype {
    downbeat_mpi_byte()
}
