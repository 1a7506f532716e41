//! Operations that programs for `mpirun` test.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use downbeat_measure::mpi::OperationKind;

/// Returns the operations that this number of ranks can perform, and that the library has. Those with a computation are the same calls as
/// non-blocking ones.
pub(crate) fn kinds(ranks: u32) -> impl Iterator<Item = OperationKind> {
    let library = mpi::environment::library_version().unwrap();
    // Its MPI_Gather_init sends what is in the buffers when the request is made, and MPI_Scatter_init fails when it is started again.
    let lacks_persistent = library.contains("MPICH Version:\t4.0");
    OperationKind::all().filter(move |kind| {
        kind.min_ranks() <= ranks
            && kind.is_available()
            && !kind.is_overlapped()
            && !(lacks_persistent && kind.is_persistent())
    })
}
