//! A program for `mpirun`: the ranks are those of one job, reach each other, and can read MPI's clock.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a test program")]

use downbeat_timers::{Clock, WtimeClock};
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives};

fn main() {
    let universe = mpi::initialize().expect("the first to initialize MPI");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    assert!((0..size).contains(&rank), "rank {rank} of {size}");

    let mut sum = 0;
    world.all_reduce_into(&rank, &mut sum, SystemOperation::sum());
    assert_eq!(sum, size * (size - 1) / 2, "the sum of all ranks");

    let clock = WtimeClock::new(&universe);
    let before = clock.ticks();
    world.barrier();
    assert!(clock.ticks() >= before, "MPI's clock ran backwards");

    if rank == 0 {
        println!("rank 0 of {size}: one job, {sum} is the sum of its ranks");
    }
}
