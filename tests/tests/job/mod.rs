//! Frame of a program for `mpirun`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a test program"
)]

use std::panic;

use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;

/// Initializes MPI, runs `program` on every rank, and finalizes MPI.
///
/// A rank that panics ends the job: the others wait for it, and MPI cannot be finalized by one of them.
pub(crate) fn job<T>(threads: Threading, program: impl FnOnce(&SimpleCommunicator) -> T) -> T {
    let (universe, _) =
        mpi::initialize_with_threading(threads).expect("the first to initialize MPI");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    panic::set_hook(Box::new(move |why| {
        eprintln!("rank {rank} among {size}: {why}");
        SimpleCommunicator::world().abort(1)
    }));
    let result = program(&world);
    if rank == 0 {
        println!("rank 0 of {size} has come to the end");
    }
    drop(universe);
    // MPI is finalized: there is no job to abort.
    drop(panic::take_hook());
    result
}
