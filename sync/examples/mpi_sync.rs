//! An MPI program whose ranks share one precise clock, and act at the same time.
//!
//! `cargo build --release -p downbeat-sync --features mpi --example mpi_sync`, and then
//! `mpirun -np 2 target/release/examples/mpi_sync`
#![expect(clippy::print_stdout, reason = "examples print their results")]

use std::error::Error;

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Global, Local, ModelClock, Timestamp,
};
use downbeat_sync::RankPlacement;
use downbeat_sync::{Algorithm, Comm, CommError, LocalClock, MpiComm, block_on_ready};
use downbeat_timers::cores::{current_core, socket_of};
use downbeat_timers::{SystemClock, SystemClockId};

fn main() -> Result<(), Box<dyn Error>> {
    let universe = mpi::initialize().ok_or("MPI was initialized already")?;
    // The messages of the program on its own communicators do not mix with those of this one.
    let comm = MpiComm::duplicate(&universe.world())?;
    let clock = global_clock(&comm)?;

    // From here on, `clock.now()` is the same time on all ranks. Rank 0 chooses a time, and all
    // wait for it.
    let start = block_on_ready(agree_on(clock.now() + Duration::from_millis(20), &comm))?;
    let woken = clock.wait_until(start);
    if comm.rank() == 0 {
        println!(
            "rank 0 of {} chose {} ns on the global clock",
            comm.size(),
            start.as_nanos()
        );
    }
    println!("rank {} woke up {} after that", comm.rank(), woken - start);
    Ok(())
}

/// Returns a clock that shows the time of rank 0 on all ranks, which all call this.
fn global_clock(comm: &MpiComm) -> Result<ModelClock<SystemClock, Global>, Box<dyn Error>> {
    let clock = SystemClock::detect(SystemClockId::MonotonicRaw)?;
    // Local time of this rank; its origin is arbitrary.
    let local =
        ClockModel::<Counter, Local>::through(clock.ticks(), Timestamp::ORIGIN, SystemClock::RATE)?;
    let socket = current_core().and_then(socket_of).unwrap_or_default();
    let me = LocalClock::new(&clock, local).placement(RankPlacement::new(comm.node()?, socket));

    // Nodes first, and then the ranks of each node.
    let algorithm: Algorithm = "h2hca(hca3/100/skampi/20,hca3/20/skampi/10)".parse()?;
    let found = algorithm.synchronize_blocking(&me, comm)?;
    Ok(ModelClock::new(clock, found.model))
}

/// Returns the time that rank 0 chose on all ranks.
async fn agree_on(
    start: Timestamp<Global>,
    comm: &MpiComm,
) -> Result<Timestamp<Global>, CommError> {
    if comm.rank() > 0 {
        return comm.recv(0).await;
    }
    for rank in 1..comm.size() {
        comm.send(rank, start).await?;
    }
    Ok(start)
}
