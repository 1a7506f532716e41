//! An MPI program whose ranks act at the same time, check their clocks, and synchronize them again.
//!
//! `cargo build --release -p downbeat --features mpi --example together`, and then
//! `mpirun -np 2 target/release/examples/together`
#![expect(clippy::print_stdout, reason = "examples print their results")]
#![expect(
    unused_qualifications,
    reason = "as in a program that depends on this crate alone"
)]

use std::error::Error;

use downbeat::{Duration, GlobalClock, MpiComm, from_first};

fn main() -> Result<(), Box<dyn Error>> {
    let universe = downbeat::mpi::initialize().ok_or("MPI was initialized before")?;
    let world = universe.world();
    let clock = GlobalClock::synchronize(&world)?;

    // Messages over this communicator do not mix with those of the program.
    let comm = MpiComm::duplicate(&world)?;
    let start = from_first(&comm, clock.now() + Duration::from_millis(5))?;
    clock.wait_until(start);
    let late = clock.elapsed_since(start);
    let (rank, size) = (clock.rank(), clock.size());
    println!("rank {rank} of {size} began {late} after {start}");

    clock.resynchronize(&world)?;
    let (now, error) = clock.now_with_error();
    let day = clock.wall_anchor()?;
    println!(
        "rank {rank}: {now} +- {error} by its {}, {:?}",
        clock.clock(),
        day.time_of(now)
    );
    Ok(())
}
