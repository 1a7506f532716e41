//! The program of the README: prints a global time on every rank.
//!
//! `cargo build --release -p downbeat --features mpi --example global_time`, and then
//! `mpirun -np 2 target/release/examples/global_time`
#![expect(clippy::print_stdout, reason = "examples print their results")]

use downbeat::{GlobalClock, mpi};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let universe = mpi::initialize().ok_or("MPI was initialized before")?;
    let clock = GlobalClock::synchronize(&universe.world())?;
    println!("rank {} of {}: {}", clock.rank(), clock.size(), clock.now());
    Ok(())
}
