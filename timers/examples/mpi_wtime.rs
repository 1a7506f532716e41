//! `MPI_Wtime` as a clock: `mpirun -np 2 target/debug/examples/mpi_wtime`, built with `--features mpi`.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]

use std::error::Error;

use downbeat_timers::{Clock, Resolution, WtimeClock};
use mpi::traits::Communicator;

fn main() -> Result<(), Box<dyn Error>> {
    let universe = mpi::initialize().ok_or("MPI was initialized already")?;
    let clock = WtimeClock::new(&universe);
    let start = clock.ticks();
    let found = Resolution::measure(&clock, 100_000).ok_or("the clock never moved")?;
    let spent = clock
        .ticks()
        .checked_since(start)
        .ok_or("the clock ran backwards")?;
    if found.backwards > 0 || spent == 0 {
        return Err(format!(
            "the clock ran backwards {} times in {spent} ns",
            found.backwards
        )
        .into());
    }
    println!(
        "rank {} of {}: reading {} ns, steps of {} ns, stated resolution {:.0} ns",
        universe.world().rank(),
        universe.world().size(),
        start.0,
        found.step,
        clock.stated_tick_nanos()
    );
    Ok(())
}
